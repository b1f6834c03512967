"""The embedded cluster: time to the first ready Deployment, and the cost of 500 Deployments.

Run by `make bench-cluster`. The first is measured from the start of the process `konverge cluster` until the condition
of `kubectl rollout status` holds, compared with the real etcd, kube-apiserver and kube-controller-manager together with
konverge's nodes. The second runs in one process, without a socket.
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

from measurement import Measurement, save_result, table, verdict

from konverge import Client, ObjectMeta
from konverge.client import is_deployment_complete, load_config
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
    """Create a Deployment as soon as the cluster accepts it, and wait for its rollout."""
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        while True:
            try:
                await client.get(Namespace, "default")
                await client.get(ServiceAccount, "default", namespace="default")
                await client.create(deployment("web"))
                break
            except KonvergeError:
                await asyncio.sleep(0.02)
        await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=120)


def bytecode_environment(directory: Path) -> dict[str, str]:
    """Return an environment in which byte code is cached, as for modules that pip installed."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "compiled")}


def embedded(directory: Path) -> float:
    """Return the seconds from the start of the process to a ready Deployment."""
    kubeconfig = directory / "embedded.kubeconfig"
    start = time.perf_counter()
    process = subprocess.Popen(
        [*KONVERGE, "cluster", "--quiet", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.DEVNULL,
        env=bytecode_environment(directory),
    )
    try:
        while not kubeconfig.exists() or not kubeconfig.stat().st_size:
            time.sleep(0.005)
        asyncio.run(first_ready(kubeconfig))
        return time.perf_counter() - start
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def real(directory: Path) -> float:
    """Return the same with the real programs, and konverge's nodes in their own process."""
    start = time.perf_counter()
    with ControlPlane(controller_manager=True) as plane:
        nodes = subprocess.Popen(
            [*KONVERGE, "nodes", "--kubeconfig", str(plane.kubeconfig)],
            stdout=subprocess.DEVNULL,
            env=bytecode_environment(directory),
        )
        try:
            asyncio.run(first_ready(Path(plane.kubeconfig)))
            return time.perf_counter() - start
        finally:
            nodes.send_signal(signal.SIGINT)
            nodes.wait(20)


async def many() -> dict[str, float]:
    """Create 500 Deployments of three pods in this process and wait until all are ready; return the cost."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with EmbeddedCluster(nodes=20) as cluster:
        client = cluster.client()
        while not await _has_default_account(client):  # noqa: ASYNC110 - a benchmark polls from outside
            await asyncio.sleep(0.01)
        cpu, start = time.process_time(), time.perf_counter()
        for number in range(MANY):
            await client.create(deployment(f"web-{number}"))
        while await _available(client) < 3 * MANY:  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        wall, used = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"wall s": wall, "cpu s": used, "peak MB": peak / 1024, "grown MB": (peak - before) / 1024}


async def _available(client: Client) -> int:
    return sum(one.status.available_replicas or 0 for one in await client.list(Deployment))


async def _has_default_account(client: Client) -> bool:
    try:
        await client.get(ServiceAccount, "default", namespace="default")
    except KonvergeError:
        return False
    return True


def main() -> None:
    shells = {"konverge cluster": Measurement("konverge cluster"), "real programs": Measurement("real programs")}
    with tempfile.TemporaryDirectory(prefix="konverge-") as directory:
        for warm_up in (embedded, real):
            warm_up(Path(directory))
        for number in range(ROUNDS):
            order = [("konverge cluster", embedded), ("real programs", real)]
            for name, measure in order if number % 2 else reversed(order):
                shells[name].rounds.append(measure(Path(directory)))
                print(f"round {number + 1}: {name} {shells[name].rounds[-1]:.2f} s", flush=True)
    metrics = asyncio.run(many())
    ratio = shells["real programs"].median / shells["konverge cluster"].median
    claim = f"a first ready Deployment at least 4x sooner than with the real programs ({ratio:.1f}x)"
    names = " | ".join(metrics)
    values = " | ".join(f"{value:,.1f}" for value in metrics.values())
    save_result(
        "cluster",
        table("From the shell to a first ready Deployment", "s", shells, "real programs")
        + f"\n### {MANY} Deployments of 3 pods become ready, in one process\n\n"
        + f"| {names} |\n|{'--:|' * len(metrics)}\n| {values} |\n\n"
        + verdict(claim, ratio >= 4)
        + "\n",
    )


if __name__ == "__main__":
    main()
