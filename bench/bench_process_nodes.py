"""Process nodes: time to a ready pod, what 50 idle pods cost, and the throughput of a Service.

Run by `make bench-process-nodes` (Linux). Pods are those of a usual operator: a memory limit, and a readiness probe for
one half. Their CPU and memory are those of the runtime: this process with the whole cluster, and the supervisors and
shims; the programs of the containers are left out. Throughput is one connection between two processes, directly and
through the forwarder of a Service.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from measurement import Measurement, save_result, table

from konverge import Client
from konverge.client import exists, has_condition, is_deleted
from konverge.objects import Unstructured
from konverge_cluster import EmbeddedCluster
from konverge_cluster.processes import LocalImage, Processes
from konverge_cluster.processes.forwarders import Forwarder, listening_socket
from konverge_cluster.processes.supervisor.descendants import descendants

PODS = 50
ROUNDS = 15
IDLE_SECONDS = 30.0
SENT = 512 * 1024 * 1024
IMAGE = LocalImage("idle:*", command=["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"])


def pod(name: str, **container: Any) -> Unstructured:
    limits = {"limits": {"memory": "64Mi"}}
    containers = [{"name": "c", "image": "idle:1", "resources": limits, **container}]
    spec = {"containers": containers, "terminationGracePeriodSeconds": 1}
    return Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


async def ready_pods(client: Client) -> list[float]:
    """Return the seconds from the creation of a pod until it is ready, one pod after the other."""
    found = []
    for number in range(ROUNDS):
        begin = time.perf_counter()
        created = await client.create(pod(f"one-{number}"))
        await client.wait_for("pods", created.name, has_condition("Ready"), timeout=60)
        found.append(time.perf_counter() - begin)
        await client.delete(created)
        await client.wait_for("pods", created.name, is_deleted(), timeout=60)
    return found


async def idle_pods(client: Client) -> dict[str, float]:
    """Create pods, and measure what they cost while nothing happens."""
    before = memory(os.getpid())
    begin = time.perf_counter()
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 10}
    for number in range(PODS):
        await client.create(pod(f"idle-{number}", **({"readinessProbe": probe} if number % 2 else {})))
    for number in range(PODS):
        await client.wait_for("pods", f"idle-{number}", has_condition("Ready"), timeout=120)
    ready = time.perf_counter() - begin
    helpers = runtime_processes()
    start = time.process_time(), sum(map(cpu, helpers))
    await asyncio.sleep(IDLE_SECONDS)
    return {
        "all ready after s": ready,
        "this process, % of a core": (time.process_time() - start[0]) / IDLE_SECONDS * 100,
        "supervisors and shims, % of a core": (sum(map(cpu, helpers)) - start[1]) / IDLE_SECONDS * 100,
        "this process, MB more": (memory(os.getpid()) - before) / 1e6,
        "supervisors and shims, MB for each pod": sum(map(memory, helpers)) / 1e6 / PODS,
    }


def runtime_processes() -> list[int]:
    """Return the supervisors and shims below this process: they run Python, the containers do not."""
    return [pid for pid in descendants(os.getpid()) if "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))]


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the memory of a process in bytes, its part of what is shared included (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def receive() -> None:
    """Accept connections for ever: read all of each, then answer one byte."""
    buffer = bytearray(1024 * 1024)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            accepted, _ = listening.accept()
            with accepted:
                while accepted.recv_into(buffer):
                    pass
                accepted.sendall(b"!")


def send(port: int) -> None:
    """Send to a port and print MB per second, until everything was received."""
    part = bytes(1024 * 1024)
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(SENT // len(part)):
            connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    print(SENT / 1e6 / (time.perf_counter() - begin))


async def throughput() -> dict[str, Measurement]:
    """Measure one connection between two processes, directly and through the forwarder of a Service."""
    receiver = await start("receive")
    assert receiver.stdout is not None
    backend = int(await receiver.stdout.readline())
    forwarder = Forwarder(lambda: ("127.0.0.1", backend))
    forwarder.start(listening_socket("127.0.0.1", 0))
    measured = {name: Measurement(name) for name in ("direct", "through a Service")}
    for _ in range(ROUNDS):
        for one, port in zip(measured.values(), (backend, forwarder.address[1]), strict=True):
            sender = await start("send", str(port))
            output, _ = await sender.communicate()
            one.rounds.append(float(output))
    forwarder.close()
    receiver.kill()
    await receiver.wait()
    return measured


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments, stdout=asyncio.subprocess.PIPE)


async def pods() -> tuple[Measurement, dict[str, float]]:
    async with EmbeddedCluster(nodes=1, runtime=Processes([IMAGE])) as cluster:
        await cluster.listen()
        client = cluster.client()
        await client.wait_for("serviceaccounts", "default", exists(), timeout=60)
        return Measurement("a pod", await ready_pods(client)), await idle_pods(client)


def main() -> None:
    if sys.platform != "linux":
        raise SystemExit("process nodes need Linux")
    one, idle = asyncio.run(pods())
    rows = [f"| {name} | {value:.2f} |" for name, value in idle.items()]
    parts = [
        table("From the creation of a pod until it is ready", "s", {"a pod": one}, "a pod"),
        "\n".join([f"### {PODS} pods at rest for {IDLE_SECONDS:.0f} s", "", "| | |", "|---|--:|", *rows]) + "\n",
        table(f"One connection of {SENT // 1_000_000} MB", "MB/s", asyncio.run(throughput()), "direct"),
    ]
    save_result("process_nodes", "\n".join(parts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        receive()
    elif sys.argv[1:2] == ["send"]:
        send(int(sys.argv[2]))
    else:
        main()
