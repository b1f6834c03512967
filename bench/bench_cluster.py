"""The embedded cluster: how soon a first Deployment is ready, and what 500 of them cost.

Run by `make bench-cluster`. The first is measured from the shell: from the start of the process `konverge cluster`
until what `kubectl rollout status` waits for is so, against the same with the real etcd, kube-apiserver and
kube-controller-manager and konverge's nodes beside them. The second is one process, without a socket.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Measured, keep, table, verdict

from konverge import Client, ObjectMeta
from konverge.client import load_config, rolled_out
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Container, Namespace, PodSpec, PodTemplateSpec, ServiceAccount
from konverge.k8s.meta.v1 import LabelSelector
from konverge.testing import ControlPlane
from konverge_cluster.embedded_cluster import EmbeddedCluster

KONVERGE = [sys.executable, "-m", "konverge"]
MANY = 500
ROUNDS = 5


def deployment(name: str) -> Deployment:
    labels = {"app": name}
    pod = PodSpec(containers=[Container(name="web", image="nginx:1.25")])
    return Deployment(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=DeploymentSpec(
            replicas=3,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


async def first_ready(kubeconfig: Path) -> None:
    """Create a Deployment as soon as the cluster takes it, and wait until it has rolled out."""
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        while True:
            try:
                await client.get(Namespace, "default")
                await client.get(ServiceAccount, "default", namespace="default")
                await client.create(deployment("web"))
                break
            except KonvergeError:
                await asyncio.sleep(0.02)
        await client.wait_for(Deployment, "web", rolled_out(), timeout=120)


def compiled(directory: Path) -> dict[str, str]:
    """An environment in which modules are compiled once and kept, as they are where pip installed them."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "compiled")}


def embedded(directory: Path) -> float:
    """Seconds from the start of the process to a ready Deployment."""
    kubeconfig = directory / "embedded.kubeconfig"
    began = time.perf_counter()
    process = subprocess.Popen(
        [*KONVERGE, "cluster", "--quiet", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.DEVNULL,
        env=compiled(directory),
    )
    try:
        while not kubeconfig.exists() or not kubeconfig.stat().st_size:
            time.sleep(0.005)
        asyncio.run(first_ready(kubeconfig))
        return time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def real(directory: Path) -> float:
    """The same with the real programs, and konverge's nodes in a process of their own."""
    began = time.perf_counter()
    with ControlPlane(controller_manager=True) as plane:
        nodes = subprocess.Popen(
            [*KONVERGE, "nodes", "--kubeconfig", str(plane.kubeconfig)],
            stdout=subprocess.DEVNULL,
            env=compiled(directory),
        )
        try:
            asyncio.run(first_ready(Path(plane.kubeconfig)))
            return time.perf_counter() - began
        finally:
            nodes.send_signal(signal.SIGINT)
            nodes.wait(20)


async def many() -> dict[str, float]:
    """Let 500 Deployments of three pods become ready, in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with EmbeddedCluster(nodes=20) as cluster:
        client = cluster.client()
        while not await _furnished(client):  # noqa: ASYNC110 - a benchmark looks from outside
            await asyncio.sleep(0.01)
        cpu, began = time.process_time(), time.perf_counter()
        for number in range(MANY):
            await client.create(deployment(f"web-{number}"))
        while await _available(client) < 3 * MANY:  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        wall, used = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"wall s": wall, "cpu s": used, "peak MB": peak / 1024, "grown MB": (peak - before) / 1024}


async def _available(client: Client) -> int:
    return sum(one.status.available_replicas or 0 for one in await client.list(Deployment))


async def _furnished(client: Client) -> bool:
    try:
        await client.get(ServiceAccount, "default", namespace="default")
    except KonvergeError:
        return False
    return True


def main() -> None:
    shells = {"konverge cluster": Measured("konverge cluster"), "real programs": Measured("real programs")}
    with tempfile.TemporaryDirectory(prefix="konverge-") as directory:
        for warm_up in (embedded, real):
            warm_up(Path(directory))
        for number in range(ROUNDS):
            order = [("konverge cluster", embedded), ("real programs", real)]
            for name, measure in order if number % 2 else reversed(order):
                shells[name].rounds.append(measure(Path(directory)))
                print(f"round {number + 1}: {name} {shells[name].rounds[-1]:.2f} s", flush=True)
    figures = asyncio.run(many())
    ratio = shells["real programs"].median / shells["konverge cluster"].median
    claim = f"a first ready Deployment at least 4x sooner than with the real programs ({ratio:.1f}x)"
    names = " | ".join(figures)
    values = " | ".join(f"{value:,.1f}" for value in figures.values())
    keep(
        "cluster",
        table("From the shell to a first ready Deployment", "s", shells, "real programs")
        + f"\n### {MANY} Deployments of 3 pods become ready, in one process\n\n"
        + f"| {names} |\n|{'--:|' * len(figures)}\n| {values} |\n\n"
        + verdict(claim, ratio >= 4)
        + "\n",
    )


if __name__ == "__main__":
    main()
