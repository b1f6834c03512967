"""The embedded cluster: time to the first ready Deployment, the cost of 500 Deployments, 200 StatefulSets and 500 Jobs.

Run by `make bench-cluster`. The first is measured from the start of the process `konverge cluster` until the condition
of `kubectl rollout status` holds, compared with the real etcd, kube-apiserver and kube-controller-manager together with
konverge's nodes. The others run in one process each, without a socket; the pods of a StatefulSet start one after the
other, and each has a claim.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from measurement import Measurement, save_result, table, verdict

from konverge import Client, ObjectMeta
from konverge.client import is_deployment_complete, load_config
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from konverge.k8s.batch.v1 import Job, JobSpec
from konverge.k8s.core.v1 import (
    Container,
    Namespace,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PodSpec,
    PodTemplateSpec,
    ServiceAccount,
    VolumeResourceRequirements,
)
from konverge.k8s.meta.v1 import LabelSelector
from konverge.testing import ControlPlane
from konverge_cluster.embedded_cluster import EmbeddedCluster

KONVERGE = [sys.executable, "-m", "konverge"]
MANY = 500
MANY_STATEFUL = 200
MANY_JOBS = 500
REPLICAS = 3
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


def stateful_set(name: str) -> StatefulSet:
    labels = {"app": name}
    pod = PodSpec(containers=[Container(name="db", image="postgres:17")])
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": "1Gi"})
        ),
    )
    return StatefulSet(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=StatefulSetSpec(
            replicas=REPLICAS,
            service_name=name,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
            volume_claim_templates=[claim],
        ),
    )


def job(name: str) -> Job:
    pod = PodSpec(restart_policy="Never", containers=[Container(name="work", image="busybox:1", command=["true"])])
    return Job(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=JobSpec(completions=REPLICAS, parallelism=REPLICAS, template=PodTemplateSpec(spec=pod)),
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


async def many(objects: Sequence[Deployment] | Sequence[StatefulSet] | Sequence[Job]) -> dict[str, float]:
    """Create objects of three pods each in this process and wait until all are ready or complete; return the cost."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with EmbeddedCluster(nodes=20) as cluster:
        client = cluster.client().without_warnings()
        while not await _has_default_account(client):  # noqa: ASYNC110 - a benchmark polls from outside
            await asyncio.sleep(0.01)
        cpu, start = time.process_time(), time.perf_counter()
        for obj in objects:
            await client.create(obj)
        while await _pods_done(client, type(objects[0])) < REPLICAS * len(objects):  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        wall, used = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"wall s": wall, "cpu s": used, "peak MB": peak / 1024, "grown MB": (peak - before) / 1024}


async def _pods_done(client: Client, kind: type[Deployment] | type[StatefulSet] | type[Job]) -> int:
    if issubclass(kind, Job):
        return sum(REPLICAS for one in await client.list(kind) if one.status.completion_time)
    return sum(one.status.available_replicas or 0 for one in await client.list(kind))


def many_in_a_process(kind: str) -> dict[str, float]:
    """Measure many Deployments, StatefulSets or Jobs in a process of their own, so that its memory is theirs."""
    output = subprocess.run([sys.executable, __file__, kind], check=True, capture_output=True, text=True).stdout
    return cast("dict[str, float]", json.loads(output))


def print_many(kind: str) -> None:
    """Measure in this process, and print the result."""
    if kind == "deployments":
        metrics = asyncio.run(many([deployment(f"web-{number}") for number in range(MANY)]))
    elif kind == "jobs":
        metrics = asyncio.run(many([job(f"work-{number}") for number in range(MANY_JOBS)]))
    else:
        metrics = asyncio.run(many([stateful_set(f"db-{number}") for number in range(MANY_STATEFUL)]))
    print(json.dumps(metrics))


def metrics_table(title: str, metrics: dict[str, float]) -> str:
    names = " | ".join(metrics)
    values = " | ".join(f"{value:,.1f}" for value in metrics.values())
    return f"\n### {title}, in one process\n\n| {names} |\n|{'--:|' * len(metrics)}\n| {values} |\n"


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
    deployments, stateful_sets = many_in_a_process("deployments"), many_in_a_process("statefulsets")
    jobs = many_in_a_process("jobs")
    ratio = shells["real programs"].median / shells["konverge cluster"].median
    claim = f"a first ready Deployment at least 4x sooner than with the real programs ({ratio:.1f}x)"
    save_result(
        "cluster",
        table("From the shell to a first ready Deployment", "s", shells, "real programs")
        + metrics_table(f"{MANY} Deployments of {REPLICAS} pods become ready", deployments)
        + metrics_table(f"{MANY_STATEFUL} StatefulSets of {REPLICAS} pods and claims become ready", stateful_sets)
        + metrics_table(f"{MANY_JOBS} Jobs of {REPLICAS} pods complete", jobs)
        + "\n"
        + verdict(claim, ratio >= 4)
        + "\n",
    )


if __name__ == "__main__":
    print_many(sys.argv[1]) if sys.argv[1:] else main()
