"""The WebApp operator with 1,000 applications: how soon all are ready, how many requests that takes, how much memory.

Run by `make bench-webapp`. The operator is a process of its own, started as in production (`konverge run`), and looked
at from outside: by its /metrics and by /proc. The cluster is the embedded one, in this process, behind a socket; so the
times are those of both together on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from measuring import keep, verdict
from operator_process import OperatorProcess
from prometheus_client.parser import text_string_to_metric_families

from konverge import Client, ObjectMeta, crd_for
from konverge.testing.servers import free_port
from konverge_cluster import EmbeddedCluster
from konverge_operators.webapp.api import Phase, WebApp, WebAppSpec

ROOT = Path(__file__).parent.parent
MANY = 1000
READS = ("get", "list", "watch")
MOST_WRITES = 10.0
"""So many writes may an application cost until it is ready: finalizer, two children, three of status, its events."""


@dataclass(frozen=True)
class Figures:
    """What one run was."""

    applications: int
    observed: float
    ready: float
    requests: Counter[str]
    quiet: Counter[str]
    restarted: float
    again: Counter[str]
    memory: float
    cpu: float
    cluster: float


class Operator:
    """The operator's process, and what it says about itself."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._port = free_port()
        command = [
            sys.executable,
            "-m",
            "konverge",
            "run",
            "konverge_operators.webapp",
            "--log-level",
            "warning",
        ]
        command += ["--metrics-host", "127.0.0.1", "--metrics-port", str(self._port)]
        self.process = OperatorProcess(command, kubeconfig=kubeconfig, resync=0, directory=directory)

    def requests(self) -> Counter[str]:
        """Give how many requests it has made, by verb; questions about its own rights aside."""
        found: Counter[str] = Counter()
        with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
            for family in text_string_to_metric_families(answer.read().decode()):
                for sample in family.samples:
                    asked = sample.name == "konverge_client_requests_total"
                    if asked and not sample.labels["kind"].endswith("Review"):
                        found[sample.labels["verb"]] += int(sample.value)
        return found

    async def until_up(self) -> None:
        while True:
            self.process.check()
            try:
                await asyncio.to_thread(self.requests)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return


def application(number: int) -> WebApp:
    spec = WebAppSpec(image="nginx:1.25", replicas=1)
    return WebApp(metadata=ObjectMeta(name=f"web-{number}", namespace="default"), spec=spec)


async def waited(client: Client, count: int, *, ready: bool) -> None:
    """Wait until so many applications are observed, or ready."""
    while True:
        found = await client.list(WebApp, namespace="default")
        done = [one for one in found if one.status.observed_generation == one.metadata.generation]
        if sum(one.status.phase is Phase.READY or not ready for one in done) >= count:
            return
        await asyncio.sleep(0.5)


@asynccontextmanager
async def operating(kubeconfig: Path, directory: Path) -> AsyncGenerator[Operator]:
    operator = Operator(kubeconfig, directory)
    await asyncio.to_thread(operator.process.__enter__)
    try:
        await operator.until_up()
        yield operator
    finally:
        await asyncio.to_thread(operator.process.__exit__, None, None, None)


async def measured(count: int, directory: Path) -> Figures:
    """Create so many applications under an operator, let it rest, and start it again."""
    kubeconfig = directory / "kubeconfig"
    async with EmbeddedCluster(nodes=10, heartbeat=0.0) as cluster:
        await cluster.listen()
        cluster.write_kubeconfig(kubeconfig)
        client = cluster.client()
        await client.create(crd_for(WebApp))
        async with operating(kubeconfig, directory) as operator:
            before, began, cluster_began = operator.requests(), time.perf_counter(), time.process_time()
            for number in range(count):
                await client.create(application(number))
            await waited(client, count, ready=False)
            observed = time.perf_counter() - began
            await waited(client, count, ready=True)
            ready, cluster_cpu = time.perf_counter() - began, time.process_time() - cluster_began
            await asyncio.sleep(10)  # events are sent in the background
            requests = await asyncio.to_thread(operator.requests)
            await asyncio.sleep(35)  # each is looked at once more
            quiet = await asyncio.to_thread(operator.requests) - requests
            memory, cpu = operator.process.peak(), operator.process.cpu()
        began = time.perf_counter()
        async with operating(kubeconfig, directory) as operator:
            await asyncio.sleep(35)
            again, restarted = await asyncio.to_thread(operator.requests), time.perf_counter() - began
    return Figures(count, observed, ready, requests - before, quiet, restarted, again, memory, cpu, cluster_cpu)


def report(found: Figures) -> str:
    """Write the figures down."""
    each = {verb: number / found.applications for verb, number in sorted(found.requests.items())}
    whole = sum(number for verb, number in found.requests.items() if verb not in READS)
    rows = [
        f"| until all are observed | {found.observed:.1f} s |",
        f"| until all are ready | {found.ready:.1f} s |",
        f"| writes per application | {whole / found.applications:.2f} |",
        f"| requests per application, by verb | {', '.join(f'{verb} {number:.2f}' for verb, number in each.items())} |",
        f"| writes in 35 s at rest | {_writes(found.quiet)} |",
        f"| writes in {found.restarted:.0f} s after a restart | {_writes(found.again)} |",
        f"| peak RSS of the operator | {found.memory / 2**20:.0f} MiB |",
        f"| CPU of the operator | {found.cpu:.1f} s, {found.cpu / found.applications * 1000:.1f} ms an application |",
        f"| CPU of the cluster until all were ready | {found.cluster:.1f} s |",
    ]
    checks = [
        verdict(f"at most {MOST_WRITES:g} writes an application", whole / found.applications <= MOST_WRITES),
        verdict("no write at rest", _writes(found.quiet) == 0),
        verdict("no write after a restart", _writes(found.again) == 0),
    ]
    head = f"### {found.applications} WebApps\n\n| | |\n|---|--:|"
    return "\n".join([head, *rows, "", *checks, ""])


def _writes(requests: Counter[str]) -> int:
    return sum(number for verb, number in requests.items() if verb not in READS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=MANY)
    count = parser.parse_args().applications
    with tempfile.TemporaryDirectory() as directory:
        text = report(asyncio.run(measured(count, Path(directory))))
    if count >= MANY:
        keep("webapp", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
