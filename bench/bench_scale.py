"""How the cache grows: 10,000, 100,000 and 1,000,000 pods of 4.8 kB, then changes on top of the last.

Run by `make bench-scale`. The pods come from `replay_server.py` in its own process, the cache is in another one for
each size. Measured are CPU time and memory of a pod, reads by key and by index, and, with the most pods, the lag and
the memory under a constant rate of changes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench_cache_events import Observer, Window
from measurement import Result
from process_stats import cpu_seconds, memory, trim_memory
from replay_server import PODS_PER_NODE

from konverge.cache import Cache, CacheOptions, Lister, by_path
from konverge.client import Client, ClientConfig
from konverge.k8s.core.v1 import Pod

SIZES = (10_000, 100_000, 1_000_000)
RATE = 1_000
SECONDS = 300.0
WINDOW = 20.0
READS = 200
LIMIT = 1.2e9
"""Bytes of the process with a million pods, compressed."""

Metrics = dict[str, float]


@contextlib.contextmanager
def replay_server(objects: int, seconds: float) -> Iterator[int]:
    """Run the server in a process; yield its port."""
    command = [sys.executable, str(Path(__file__).parent / "replay_server.py")]
    options = ["--objects", str(objects), "--rate", str(RATE), "--seconds", str(seconds)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def fill_cache(port: int, count: int, *, compress: bool, seconds: float) -> Metrics:
    """Fill a cache, read from it, and watch changes for some seconds."""
    observer = Observer()
    connection = Client.connect(ClientConfig(server=f"http://127.0.0.1:{port}"))
    async with connection as client, Cache(client.collection) as cache:
        trim_memory()
        base, cpu = memory("VmRSS"), cpu_seconds()
        options = CacheOptions(compress=compress, indexes=(("node", by_path(".spec.nodeName")),))
        lister = cache.declare(Pod, options)
        await lister.subscribe(observer.on_event)
        await cache.wait_for_sync(timeout=1800)
        used = cpu_seconds() - cpu
        assert len(lister.entries()) == count
        trim_memory()
        settled = memory("VmRSS")
        metrics = {
            "cpu": used / count,
            "held": (settled - base) / count,
            "process": settled,
            "peak": memory("VmHWM"),
            **read_times(lister, count),
        }
        if seconds:
            metrics |= await watch_changes(observer, seconds)
        return metrics


def read_times(lister: Lister[Pod], count: int) -> Metrics:
    """Return the median and the slowest of the reads by key, and by index (all pods of a node)."""
    choose = random.Random(1).randrange
    names = [f"pod-{choose(count)}" for _ in range(READS)]
    nodes = [f"node-{choose(count // PODS_PER_NODE)}" for _ in range(READS)]

    def by_key(name: str) -> None:
        assert lister.get(name, namespace="shop") is not None

    def by_node(node: str) -> None:
        assert len(lister.find("node", node)) == PODS_PER_NODE

    return _timed("key", by_key, names) | _timed("node", by_node, nodes)


def _timed(name: str, read: Callable[[str], None], arguments: list[str]) -> Metrics:
    times = []
    for one in arguments:
        begin = time.perf_counter()
        read(one)
        times.append(time.perf_counter() - begin)
    return {f"{name}_median": statistics.median(times), f"{name}_slowest": max(times)}


async def watch_changes(observer: Observer, seconds: float) -> Metrics:
    """Watch the changes; return their lag, the CPU share and the growth of the memory after the first window."""
    windows, length = observer.windows, min(WINDOW, seconds / 3)
    for _ in range(round(seconds / length)):
        before = cpu_seconds()
        await asyncio.sleep(length)
        windows[-1].cpu = (cpu_seconds() - before) / length
        windows[-1].rss = memory("VmRSS")
        windows.append(Window())
    windows.pop()
    settled = windows[1:]
    return {
        "changes": observer.delivered,
        "gaps": observer.gaps,
        "lag": statistics.median(one.median for one in settled),
        "worst_lag": max(one.worst for one in settled),
        "share": statistics.median(one.cpu for one in settled),
        "growth": settled[-1].rss - settled[0].rss,
    }


def one_process(count: int, *, compress: bool, seconds: float) -> Metrics:
    """Fill a cache in a process of its own and return its metrics."""
    with replay_server(count, seconds) as port:
        command = [sys.executable, __file__, "--port", str(port), "--count", str(count), "--seconds", str(seconds)]
        command += ["--compress"] if compress else []
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"{count} pods failed:\n{done.stderr[-3000:]}")
    metrics: Metrics = json.loads(done.stdout.splitlines()[-1])
    print(f"{count} {compress=}: {metrics}", file=sys.stderr, flush=True)
    return metrics


COLUMNS = {
    "cpu": ("us CPU/pod", 1e6, 0),
    "held": ("kB/pod", 1e-3, 2),
    "process": ("process MB", 1e-6, 0),
    "peak": ("peak MB", 1e-6, 0),
    "key_median": ("by key us", 1e6, 0),
    "key_slowest": ("slowest us", 1e6, 0),
    "node_median": ("100 by index ms", 1e3, 2),
    "node_slowest": ("slowest ms", 1e3, 2),
}


def table(found: dict[tuple[int, bool], Metrics]) -> str:
    rows = ["| pods | " + " | ".join(title for title, _, _ in COLUMNS.values()) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for (count, compress), metrics in found.items():
        cells = (f"{metrics[name] * unit:,.{digits}f}" for name, (_, unit, digits) in COLUMNS.items())
        rows.append(f"| {count:,}{', compressed' if compress else ''} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def main(sizes: list[int], seconds: float) -> None:
    largest = max(sizes)
    found = {
        (count, compress): one_process(count, compress=compress, seconds=seconds if last else 0)
        for compress in (False, True)
        for count in sizes
        if compress or count <= 100_000
        for last in [compress and count == largest]
    }
    result = Result("scale", "Pods of 4.8 kB that differ in addresses, node and container ids.")
    result.text(table(found))
    small, large = found[min(sizes), True], found[largest, True]
    for name in ("cpu", "held"):
        ratio = large[name] / small[name]
        result.target(f"{COLUMNS[name][0]} stays flat from {min(sizes):,} to {largest:,} ({ratio:.2f}x)", ratio <= 1.15)
    process = large["process"]
    result.target(f"{largest:,} pods fit into {LIMIT / 1e9:g} GB ({process / 1e9:.2f} GB)", process <= LIMIT)
    lag, worst, growth = large["lag"] * 1e3, large["worst_lag"] * 1e3, large["growth"]
    result.text(
        f"{RATE:,} changes a second for {seconds:.0f} s on top of {largest:,} pods: {large['changes']:,.0f} delivered,"
        f" lag {lag:.1f} ms (worst {worst:.0f} ms), {large['share']:.0%} of a core, memory {growth / 1e6:+.1f} MB.\n"
    )
    delivered = large["changes"] / (RATE * seconds)
    result.target(
        f"every change is delivered, none is lost ({delivered:.0%})", large["gaps"] == 0 and delivered >= 0.95
    )
    result.target(f"memory does not grow under changes ({growth / 1e6:+.1f} MB)", growth < 0.01 * process)
    result.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long changes are sent in the end")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--compress", action="store_true")
    args = parser.parse_args()
    if args.port:
        print(json.dumps(asyncio.run(fill_cache(args.port, args.count, compress=args.compress, seconds=args.seconds))))
    else:
        main(args.sizes, args.seconds)
