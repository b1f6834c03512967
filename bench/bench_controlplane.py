"""The embedded server compared with the real etcd and kube-apiserver.

Run by `make bench-controlplane`. It measures time to ready, creates and gets per second over HTTPS, a list of 10,000
objects, a watch with 100 watchers, memory, and creates per second in-process, without a socket. The embedded server
runs in its own process on one core; the load comes from this process on the other core. The real server uses both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from measurement import Measurement, save_result, table, verdict

from konverge.client import HttpTransport, load_config
from konverge.objects import encode
from konverge.wire import Request

DATA = {"config.yaml": "key: value\n" * 80, "mode": "fast"}
COLLECTION = "/api/v1/namespaces/default/configmaps"
JSON = {"accept": "application/json", "content-type": "application/json"}
IN_FLIGHT = 16
CREATES = 2_000
GETS = 4_000
LISTED = 10_000
WATCHERS = 100
WATCHED = 100

Metrics = dict[str, float]


def body(name: str) -> bytes:
    return encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": DATA})


# Servers


@contextmanager
def embedded(directory: Path) -> Iterator[tuple[float, str, list[int]]]:
    """Run the embedded server in a process on the first core; yield the time to ready after import, and the process."""
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, __file__, "--serve", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            os.sched_setaffinity(process.pid, {0})
            yield float(process.stdout.readline()), str(kubeconfig), [process.pid]
        finally:
            process.stdin.close()
            process.wait(timeout=30)


async def serve(kubeconfig: Path) -> None:
    from konverge_cluster.embedded_server import EmbeddedServer

    begin = time.perf_counter()
    async with EmbeddedServer() as server:
        server.write_kubeconfig(kubeconfig)
        print(time.perf_counter() - begin, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def real(_: Path) -> Iterator[tuple[float, str, list[int]]]:
    from konverge.testing import ControlPlane

    begin = time.perf_counter()
    with ControlPlane() as plane:
        yield time.perf_counter() - begin, str(plane.kubeconfig), list(plane.pids.values())


# Jobs


async def many(transport: HttpTransport, requests: list[Request]) -> float:
    """Send requests, 16 concurrently; return the responses per second."""
    remaining = iter(requests)

    async def worker() -> None:
        for request in remaining:
            async with await transport.send(request) as response:
                await response.read()
                assert response.status < 300, response.status

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker())
    return len(requests) / (time.perf_counter() - begin)


def creates(prefix: str, count: int) -> list[Request]:
    return [
        Request("POST", COLLECTION, headers=JSON, body=body(f"{prefix}-{number}"), timeout=60)
        for number in range(count)
    ]


async def list_seconds(transport: HttpTransport) -> float:
    begin = time.perf_counter()
    async with await transport.send(Request("GET", COLLECTION, headers=JSON, timeout=120)) as response:
        await response.read()
    return time.perf_counter() - begin


async def fan_out(transport: HttpTransport) -> float:
    """Create 100 objects with 100 watchers; return the events per second that all watchers received."""
    query = (("watch", "true"), ("fieldSelector", "metadata.namespace=kube-public"))
    path = "/api/v1/namespaces/kube-public/configmaps"
    opened = [
        await transport.send(Request("GET", path, query=query, headers=JSON, stream=True)) for _ in range(WATCHERS)
    ]

    async def consume(response: object) -> None:
        seen = 0
        async for chunk in response.chunks():  # type: ignore[attr-defined]
            seen += chunk.count(b"\n")
            if seen >= WATCHED:
                return

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for response in opened:
            group.create_task(consume(response))
        for number in range(WATCHED):
            request = Request("POST", path, headers=JSON, body=body(f"watched-{number}"), timeout=60)
            async with await transport.send(request) as created:
                await created.read()
    seconds = time.perf_counter() - begin
    for response in opened:
        await response.close()
    return WATCHERS * WATCHED / seconds


async def in_process(count: int = 5_000) -> float:
    """Create objects through the in-process transport; return creates per CPU second, since nothing waits for I/O."""
    from konverge.client import InProcessTransport
    from konverge_cluster.embedded_server import EmbeddedServer

    transport = InProcessTransport(EmbeddedServer().handle)
    requests = creates("direct", count)
    begin = time.process_time()
    for request in requests:
        async with await transport.send(request) as response:
            await response.read()
    return count / (time.process_time() - begin)


def resident(pids: list[int]) -> float:
    """Return the resident memory of processes in MB."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * resource.getpagesize() / 1e6


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time that processes have used, user and system."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(load_config(kubeconfig=kubeconfig)) as transport:
        yield transport


async def jobs(kubeconfig: str, pids: list[int]) -> Metrics:
    async with connected(kubeconfig) as transport:
        await many(transport, creates("warm", 50))
        spent = cpu_seconds(pids)
        metrics = {"creates/s": await many(transport, creates("item", CREATES))}
        metrics["server CPU of a create, us"] = (cpu_seconds(pids) - spent) / CREATES * 1e6
        get = Request("GET", f"{COLLECTION}/item-0", headers=JSON, timeout=60)
        metrics["gets/s"] = await many(transport, [get] * GETS)
        metrics["watch events/s to 100 watchers"] = await fan_out(transport)
        await many(transport, creates("more", LISTED - CREATES - 50))
        metrics["list of 10,000, s"] = await list_seconds(transport)
        metrics["memory with 10,000 objects, MB"] = resident(pids)
    return metrics


def measure(rounds: int) -> dict[str, dict[str, Measurement]]:
    measured: dict[str, dict[str, Measurement]] = {}
    for _ in range(rounds):
        for name, server in (("embedded", embedded), ("real", real)):
            with tempfile.TemporaryDirectory() as directory, server(Path(directory)) as (ready, kubeconfig, pids):
                metrics = {"ready, s": ready, **asyncio.run(jobs(kubeconfig, pids))}
            for job, metric in metrics.items():
                measured.setdefault(job, {}).setdefault(name, Measurement(name)).rounds.append(metric)
    return measured


def main(rounds: int) -> None:
    os.sched_setaffinity(0, {1})
    direct = Measurement("in-process creates/s", [asyncio.run(in_process()) for _ in range(rounds)])
    measured = measure(rounds)
    text = f"ConfigMaps of 1 kB; median of {rounds} rounds; 16 requests in flight.\n\n"
    text += "".join(table(job, job, by_server, "real") + "\n" for job, by_server in measured.items())
    ready, rate = measured["ready, s"], measured["creates/s"]
    sooner = ready["real"].median / ready["embedded"].median
    faster = rate["embedded"].median / rate["real"].median
    text += f"In-process creates: {direct.median:,.0f} a second (spread {direct.spread:,.0f}).\n\n"
    verdicts = [
        verdict(f"ready at least 8x sooner than the real one ({sooner:.1f}x)", sooner >= 8),
        verdict(f"twice its creates/s over HTTPS with one core ({faster:.2f}x)", faster >= 2),
        verdict(f"5,000 creates/s in-process ({direct.median:,.0f})", direct.median >= 5_000),
    ]
    save_result("controlplane", text + "\n".join(verdicts) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=Path)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.serve))
    else:
        main(args.rounds)
