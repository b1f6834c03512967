"""A cache under 2,000 changes per second for a minute: whether its lag or its memory grows.

Run by `make bench-cache-events`. The changes come from `replay_server.py` in its own process. Lag is the time from
sending a frame to the call of a subscriber, measured for one change in twenty.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from measurement import Result
from process_stats import cpu_seconds, memory
from replay_server import SENT

from konverge.cache import Cache, Event
from konverge.client import Client, ClientConfig
from konverge.k8s.core.v1 import Pod

WINDOW = 5.0
_SAMPLED = 20


@dataclass
class Window:
    """The measurements of a few seconds."""

    events: int = 0
    lags: list[float] = field(default_factory=list)
    cpu: float = 0.0
    rss: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.lags) if self.lags else float("inf")

    @property
    def worst(self) -> float:
        return max(self.lags, default=float("inf"))


@contextlib.contextmanager
def replay_server(rate: int, seconds: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the server; yield its process and its port."""
    command = [sys.executable, str(Path(__file__).parent / "replay_server.py"), "--rate", str(rate)]
    with subprocess.Popen([*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.terminate()


@dataclass
class Observer:
    """A subscriber that counts. Versions are consecutive, so a gap is a change that was not delivered."""

    windows: list[Window] = field(default_factory=lambda: [Window()])
    delivered: int = 0
    gaps: int = 0
    version: int = 0

    def on_event(self, event: Event) -> None:
        if event.listed:
            return
        version = int(event.entry.version)
        self.gaps += self.version not in (0, version - 1)
        self.version = version
        self.delivered += 1
        window = self.windows[-1]
        window.events += 1
        if self.delivered % _SAMPLED == 0:
            pod = event.entry.read(Pod)
            window.lags.append(time.time() - float(pod.metadata.annotations[SENT]))


async def observe(port: int, seconds: float, last: Callable[[], tuple[int, int]]) -> tuple[Observer, int]:
    """Watch the collection to the end; return the observer and the number of changes that were sent."""
    observer = Observer()
    windows = observer.windows
    connection = Client.connect(ClientConfig(server=f"http://127.0.0.1:{port}"))
    async with connection as client, Cache(client.collection) as cache:
        lister = cache.declare(Pod)
        await lister.subscribe(observer.on_event)
        await cache.wait_for_sync(timeout=30)
        for _ in range(int(seconds / WINDOW)):
            before = cpu_seconds()
            await asyncio.sleep(WINDOW)
            windows[-1].cpu = (cpu_seconds() - before) / WINDOW
            windows[-1].rss = memory("VmRSS")
            windows.append(Window())
        sent, version = await asyncio.to_thread(last)
        async with asyncio.timeout(30):
            while observer.version < version:  # noqa: ASYNC110 - a short poll after the measurement
                await asyncio.sleep(0.05)
        windows.pop()
        return observer, sent


def report(observer: Observer, sent: int, rate: int) -> Result:
    windows = observer.windows
    result = Result("cache-events", f"{rate:,} changes a second of pods of 4.8 kB, {sent:,} in all.")
    rows = ["| until s | changes | lag ms, median | lag ms, worst | cpu | RSS MB |", "|--:|--:|--:|--:|--:|--:|"]
    for number, window in enumerate(windows, 1):
        rows.append(
            f"| {number * WINDOW:.0f} | {window.events:,} | {window.median * 1e3:.1f} | {window.worst * 1e3:.0f} "
            f"| {window.cpu:.0%} | {window.rss / 1e6:.1f} |"
        )
    half = len(windows) // 2
    early, late = windows[1:half], windows[half:]
    lag = statistics.median(one.median for one in late) / statistics.median(one.median for one in early)
    growth = max(one.rss for one in late) - max(one.rss for one in early)
    result.text("\n".join(rows) + "\n")
    result.target(
        f"every change was delivered ({observer.delivered:,} of {sent:,}, {observer.gaps} gaps)",
        observer.delivered == sent,
    )
    result.target(f"lag does not grow ({lag:.2f}x in the second half)", lag <= 1.5 or late[-1].median < 0.05)
    result.target(f"memory does not grow ({growth / 1e6:+.1f} MB in the second half)", growth < 3e6)
    return result


def main(rate: int, seconds: float) -> None:
    with replay_server(rate, seconds) as (process, port):

        def last() -> tuple[int, int]:
            assert process.stdout is not None
            sent, version = process.stdout.readline().split()
            return int(sent), int(version)

        observer, sent = asyncio.run(observe(port, seconds, last))
    report(observer, sent, rate).save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60, help="at least 20")
    args = parser.parse_args()
    main(args.rate, args.seconds)
