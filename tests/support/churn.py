"""Create and delete workloads and namespaces again and again on an embedded cluster; as a program, report its memory.

python tests/support/churn.py 20        writes the resident memory, in MB, after each fifth of 20 rounds
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from konverge import Client
from konverge.objects import Unstructured
from konverge.testing import run_in_virtual_time
from konverge_cluster import EmbeddedCluster
from konverge_cluster.testing import virtual_clock

__all__ = ["EVERY_KIND", "churn", "deployment"]

Make = Callable[[str, str], Unstructured]

_PAYLOAD = "x" * 100_000
_REPORTS = 5


async def churn(client: Client, number: int, kinds: Sequence[str] = ("deployment", "job", "service")) -> None:
    """Create workloads in a new namespace and delete all of it while controllers still write."""
    namespace = f"churn-{number}"
    await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    for index in range(2):
        for kind in kinds:
            await client.create(_MAKERS[kind](namespace, f"{kind}-{index}"))
    await asyncio.sleep((0.0, 0.3, 1.1, 4.0)[number % 4])
    for kind in kinds:
        await client.delete(_PLURALS[kind], f"{kind}-0", namespace=namespace, propagation="Background")
    await asyncio.sleep((0.0, 0.7, 2.0)[number % 3])
    await client.delete("namespaces", namespace)


async def _report_memory(rounds: int) -> None:
    async with EmbeddedCluster(clock=virtual_clock, seed=1, heartbeat=0.0) as cluster:
        client = cluster.client()
        for number in range(rounds):
            await churn(client, number)
            await _fill_history(client)
            await asyncio.sleep(60)
            if (number + 1) % (rounds // _REPORTS) == 0:
                sys.stdout.write(f"{_resident_megabytes():.1f}\n")


async def _fill_history(client: Client) -> None:
    """Write large objects: the history of the server is full after few rounds."""
    for index in range(10):
        await client.create(_config_map(f"fill-{index}"))
        await client.delete("configmaps", f"fill-{index}")


def _resident_megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _template(name: str, policy: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "app:1"}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": policy, "containers": containers}}


def deployment(namespace: str, name: str) -> Unstructured:
    """Return a Deployment of three pods."""
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": _template(name, "Always")}
    return _object("apps/v1", "Deployment", namespace, name, spec)


def _job(namespace: str, name: str) -> Unstructured:
    return _object("batch/v1", "Job", namespace, name, {"completions": 2, "template": _template(name, "Never")})


def _service(namespace: str, name: str) -> Unstructured:
    spec = {"selector": {"app": name.replace("service", "deployment")}, "ports": [{"port": 80}]}
    return _object("v1", "Service", namespace, name, spec)


def _stateful_set(namespace: str, name: str) -> Unstructured:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": _template(name, "Always")}
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    return _object("apps/v1", "StatefulSet", namespace, name, {**spec, "volumeClaimTemplates": templates})


def _cron_job(namespace: str, name: str) -> Unstructured:
    template = {"spec": {"template": _template(name, "Never")}}
    return _object("batch/v1", "CronJob", namespace, name, {"schedule": "* * * * *", "jobTemplate": template})


def _budget(namespace: str, name: str) -> Unstructured:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name.replace("budget", "statefulset")}}}
    return _object("policy/v1", "PodDisruptionBudget", namespace, name, spec)


def _object(api_version: str, kind: str, namespace: str, name: str, spec: dict[str, Any]) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


def _config_map(name: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": _PAYLOAD}})


_MAKERS: dict[str, Make] = {
    "deployment": deployment,
    "job": _job,
    "service": _service,
    "statefulset": _stateful_set,
    "cronjob": _cron_job,
    "budget": _budget,
}
_PLURALS = {
    "deployment": "deployments.apps",
    "job": "jobs.batch",
    "service": "services",
    "statefulset": "statefulsets.apps",
    "cronjob": "cronjobs.batch",
    "budget": "poddisruptionbudgets.policy",
}
EVERY_KIND = tuple(_MAKERS)


if __name__ == "__main__":
    run_in_virtual_time(_report_memory(int(sys.argv[1])), debug=False)
