"""The WebApp operator with 1,000 applications: time until all are ready, requests, memory.

Run by `make bench-webapp`. The operator runs in its own process, started as in production (`konverge run`), and is
observed from outside: through its /metrics and /proc. The embedded cluster runs in this process, behind a socket; the
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

from measurement import save_result, verdict
from operator_process import OperatorProcess
from prometheus_client.parser import text_string_to_metric_families

from konverge import Client, ObjectMeta, crd_for
from konverge.testing.servers import free_port
from konverge_cluster import EmbeddedCluster
from konverge_operators.webapp.api import Phase, WebApp, WebAppSpec

ROOT = Path(__file__).parent.parent
MANY = 1000
READS = ("get", "list", "watch")
MAX_WRITES = 10.0
"""Writes per application until it is ready: the finalizer, two children, three status updates, its events."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of one run."""

    applications: int
    observed: float
    ready: float
    requests: Counter[str]
    idle: Counter[str]
    restarted: float
    after_restart: Counter[str]
    memory: float
    cpu: float
    cluster: float


class Operator:
    """The operator's process and its own metrics."""

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
        """Return the number of its requests by verb, without access reviews."""
        requests: Counter[str] = Counter()
        with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as response:
            for family in text_string_to_metric_families(response.read().decode()):
                for sample in family.samples:
                    is_request = sample.name == "konverge_client_requests_total"
                    if is_request and not sample.labels["kind"].endswith("Review"):
                        requests[sample.labels["verb"]] += int(sample.value)
        return requests

    async def wait_until_up(self) -> None:
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


async def wait_for_applications(client: Client, count: int, *, ready: bool) -> None:
    """Wait until `count` applications are observed, or ready."""
    while True:
        applications = await client.list(WebApp, namespace="default")
        done = [one for one in applications if one.status.observed_generation == one.metadata.generation]
        if sum(one.status.phase is Phase.READY or not ready for one in done) >= count:
            return
        await asyncio.sleep(0.5)


@asynccontextmanager
async def running_operator(kubeconfig: Path, directory: Path) -> AsyncGenerator[Operator]:
    operator = Operator(kubeconfig, directory)
    await asyncio.to_thread(operator.process.__enter__)
    try:
        await operator.wait_until_up()
        yield operator
    finally:
        await asyncio.to_thread(operator.process.__exit__, None, None, None)


async def measure(count: int, directory: Path) -> Metrics:
    """Create `count` applications with a running operator, wait while it is idle, and restart it."""
    kubeconfig = directory / "kubeconfig"
    async with EmbeddedCluster(nodes=10, heartbeat=0.0) as cluster:
        await cluster.listen()
        cluster.write_kubeconfig(kubeconfig)
        client = cluster.client()
        await client.create(crd_for(WebApp))
        async with running_operator(kubeconfig, directory) as operator:
            before, start, cluster_start = operator.requests(), time.perf_counter(), time.process_time()
            for number in range(count):
                await client.create(application(number))
            await wait_for_applications(client, count, ready=False)
            observed = time.perf_counter() - start
            await wait_for_applications(client, count, ready=True)
            ready, cluster_cpu = time.perf_counter() - start, time.process_time() - cluster_start
            await asyncio.sleep(10)  # events are sent in the background
            requests = await asyncio.to_thread(operator.requests)
            await asyncio.sleep(35)  # each is reconciled once more
            idle = await asyncio.to_thread(operator.requests) - requests
            memory, cpu = operator.process.peak(), operator.process.cpu()
        start = time.perf_counter()
        async with running_operator(kubeconfig, directory) as operator:
            await asyncio.sleep(35)
            after_restart, restarted = await asyncio.to_thread(operator.requests), time.perf_counter() - start
    return Metrics(count, observed, ready, requests - before, idle, restarted, after_restart, memory, cpu, cluster_cpu)


def report(metrics: Metrics) -> str:
    """Return the metrics as a table."""
    each = {verb: number / metrics.applications for verb, number in sorted(metrics.requests.items())}
    writes = sum(number for verb, number in metrics.requests.items() if verb not in READS)
    cpu_each = metrics.cpu / metrics.applications
    rows = [
        f"| until all are observed | {metrics.observed:.1f} s |",
        f"| until all are ready | {metrics.ready:.1f} s |",
        f"| writes per application | {writes / metrics.applications:.2f} |",
        f"| requests per application, by verb | {', '.join(f'{verb} {number:.2f}' for verb, number in each.items())} |",
        f"| writes in 35 s while idle | {_writes(metrics.idle)} |",
        f"| writes in {metrics.restarted:.0f} s after a restart | {_writes(metrics.after_restart)} |",
        f"| peak RSS of the operator | {metrics.memory / 2**20:.0f} MiB |",
        f"| CPU of the operator | {metrics.cpu:.1f} s, {cpu_each * 1000:.1f} ms per application |",
        f"| CPU of the cluster until all were ready | {metrics.cluster:.1f} s |",
    ]
    checks = [
        verdict(f"at most {MAX_WRITES:g} writes per application", writes / metrics.applications <= MAX_WRITES),
        verdict("no write while idle", _writes(metrics.idle) == 0),
        verdict("no write after a restart", _writes(metrics.after_restart) == 0),
    ]
    head = f"### {metrics.applications} WebApps\n\n| | |\n|---|--:|"
    return "\n".join([head, *rows, "", *checks, ""])


def _writes(requests: Counter[str]) -> int:
    return sum(number for verb, number in requests.items() if verb not in READS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=MANY)
    count = parser.parse_args().applications
    with tempfile.TemporaryDirectory() as directory:
        text = report(asyncio.run(measure(count, Path(directory))))
    if count >= MANY:
        save_result("webapp", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
