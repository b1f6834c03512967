"""Clusters with controllers and without nodes: the test is the scheduler and the kubelet.

`embedded_workload_cluster` is the embedded server with our controllers on virtual time, `real_workload_cluster` a real
API server with the real controller manager. A scenario is a function of one; its end state can be compared (`seen`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from konverge.client import Client, InProcessTransport, load_config
from konverge.errors import NotFound
from konverge.k8s.core.v1 import Pod
from konverge.manager import Manager
from konverge.objects import Key, Unstructured, encode, kind_of
from konverge.testing import ControlPlane, VirtualTimeLoop, settle
from konverge.wire import Transport
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.workloads import workload_controllers
from quiet_namespaces import QuietNamespaces

__all__ = [
    "NODE",
    "WATCHED",
    "EmbeddedWorkloadCluster",
    "WorkloadCluster",
    "embedded_workload_cluster",
    "event_messages",
    "real_workload_cluster",
    "seen",
]

START = 1_800_000_000.0
WATCHED = (
    "deployments.apps",
    "replicasets.apps",
    "pods",
    "jobs.batch",
    "statefulsets.apps",
    "controllerrevisions.apps",
    "persistentvolumeclaims",
    "cronjobs.batch",
    "poddisruptionbudgets.policy",
    "services",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}


class WorkloadCluster:
    """A namespace of a cluster, with methods that act as the kubelet."""

    collects = True
    """Whether a garbage collector runs."""

    def __init__(self, client: Client, namespace: str, quiet_namespaces: QuietNamespaces | None = None) -> None:
        client = client.using(namespace=namespace, field_manager="test")
        self.client = client if quiet_namespaces is None else quiet_namespaces.observed(client, namespace)
        self.namespace = namespace
        self._quiet_namespaces = quiet_namespaces
        self._addresses = 0

    # Objects

    async def create(self, wire: dict[str, Any]) -> Unstructured:
        made = Unstructured(wire)
        made.metadata["namespace"] = self.namespace
        return await self.client.create(made)

    async def merge(self, kind: str, name: str, patch: dict[str, Any]) -> None:
        await self.client.patch(kind, name, patch)

    async def get(self, kind: str, name: str) -> Unstructured:
        return await self.client.get(kind, name)

    async def all(self, kind: str, labels: str = "") -> list[Unstructured]:
        return list(await self.client.list(kind, namespace=self.namespace, labels=labels))

    async def settle(self) -> None:
        """Wait until nothing changes any more; on a real server, until nothing has changed for two seconds."""
        if self._quiet_namespaces is None:
            await settle()
        else:
            await self._quiet_namespaces.wait(self.client, self.namespace)

    async def until(self, claim: Callable[[], Any], what: str, limit: float = 90) -> None:
        """Wait until a condition holds."""
        end = asyncio.get_running_loop().time() + limit
        while not await claim():
            assert asyncio.get_running_loop().time() < end, f"{what}: not within {limit} s"
            await asyncio.sleep(0.5)

    async def delete_owner(self, kind: str, name: str, children: str) -> None:
        """Delete an owner and orphan its children; without a garbage collector, act as one."""
        await self.client.delete(kind, name, propagation="Orphan")
        if not self.collects:
            for child in await self.all(children):
                await self.merge(children, child.name, {"metadata": {"ownerReferences": None}})
            await self.merge(kind, name, {"metadata": {"finalizers": None}})

        async def is_gone() -> bool:
            return all(one.name != name for one in await self.all(kind))

        await self.until(is_gone, f"{kind} {name} gone")

    # The kubelet

    async def pods(self, labels: str = "") -> list[Pod]:
        return list(await self.client.list(Pod, namespace=self.namespace, labels=labels))

    async def bind(self, pod: Pod, node: str = "n1") -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": self.namespace},
            "target": {"kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}/binding"
        await self._post(path, binding)

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        request = self.client._request("POST", path, body=encode(body))
        await self.client._call(request, "bind", kind_of(Pod), Key(self.namespace, ""))

    async def start(self, *, labels: str = "", count: int = 1000, ready: bool = True) -> None:
        """Start up to `count` of the unscheduled pods, the first by name."""
        waiting = [pod for pod in await self.pods(labels) if not pod.spec.node_name]
        for pod in sorted(waiting, key=lambda pod: pod.name)[:count]:
            await self.bind(pod)
            self._addresses += 1
            address = f"10.244.0.{self._addresses}"
            await self.write_status(pod, "Running", podIP=address, podIPs=[{"ip": address}], conditions=_ready(ready))
        await self.settle()

    async def end(self, phase: str, *, labels: str = "", count: int = 1000, code: int = 0) -> None:
        """Terminate running pods."""
        running = [pod for pod in await self.pods(labels) if pod.status.phase == "Running"]
        for pod in sorted(running, key=lambda pod: pod.name)[:count]:
            terminated = {"exitCode": code, "finishedAt": _now(), "startedAt": _now()}
            status = {
                "name": "c",
                "restartCount": 0,
                "image": "i",
                "imageID": "",
                "ready": False,
                "state": {"terminated": terminated},
            }
            await self.write_status(pod, phase, conditions=_ready(ready=False), containerStatuses=[status])
        await self.settle()

    async def write_status(self, pod: Pod, phase: str, **status: Any) -> None:
        patch = {"status": {"phase": phase, **status}}
        await self.client.patch(Pod, pod.name, patch, patch_type="strategic", subresource="status")

    async def remove_deleted(self) -> None:
        """Remove pods that are being deleted."""
        for pod in await self.pods():
            if pod.metadata.deletion_timestamp is not None:
                try:
                    await self.client.delete(Pod, pod.name, grace_period=0)
                except NotFound:
                    continue
        await self.settle()


def _now() -> str:
    loop = asyncio.get_running_loop()
    moment = START + loop.time() if isinstance(loop, VirtualTimeLoop) else datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ready(ready: bool) -> list[dict[str, Any]]:
    word = "True" if ready else "False"
    return [{"type": "Ready", "status": word, "lastTransitionTime": _now()}]


def _clock() -> float:
    return START + asyncio.get_running_loop().time()


class EmbeddedWorkloadCluster(WorkloadCluster):
    """The embedded server, whose controllers can be stopped and started again."""

    collects = False

    def __init__(self, *, feature_gates: Iterable[str] = ()) -> None:
        self.server = EmbeddedServer(clock=_clock, seed=1, feature_gates=feature_gates)
        super().__init__(Client(InProcessTransport(self.server.handle)), "default")

    @asynccontextmanager
    async def controllers(self, transport: Transport | None = None) -> AsyncGenerator[Manager]:
        """Run our controllers while the block runs."""
        client = Client(transport or InProcessTransport(self.server.handle))
        manager = Manager(client, name="kube-controller-manager")
        manager.add(*workload_controllers(clock=_clock))
        async with manager.running():
            yield manager


@asynccontextmanager
async def embedded_workload_cluster() -> AsyncGenerator[EmbeddedWorkloadCluster]:
    """Run the embedded server with our controllers."""
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured(NODE))
    async with cluster.controllers():
        yield cluster


@asynccontextmanager
async def real_workload_cluster(
    plane: ControlPlane, namespace: str, quiet_namespaces: QuietNamespaces
) -> AsyncGenerator[WorkloadCluster]:
    """Give a namespace of a real server whose controller manager is at work; `quiet_namespaces` follows that server."""
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        await client.apply(Unstructured(NODE))
        cluster = WorkloadCluster(client, namespace, quiet_namespaces)

        async def has_account() -> bool:
            return any(one.name == "default" for one in await cluster.all("serviceaccounts"))

        await cluster.until(has_account, "the default service account")
        yield cluster


# Comparison

_HASH = re.compile(r"-[bcdf-hj-np-tv-xz2-9]{8,10}(?=[-\":, ]|$)")
_TIME_SUFFIX = re.compile(r"-\d{8}(?=[-\":, ]|$)")
_SUFFIX = re.compile(r"-[bcdf-hj-np-tv-xz2-9]{5}(?=[\":, ]|$)")
_DROPPED = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "namespace", "clusterIP"}
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = re.compile(r"^\d{4}-\d\d-\d\dT")


def masked(value: Any) -> Any:
    """Mask what differs from run to run: identities, times, hashes and generated name suffixes."""
    if isinstance(value, dict):
        kept = {key: masked(one) for key, one in value.items() if key not in _DROPPED}
        return {key: "<hash>" if key == "pod-template-hash" else one for key, one in kept.items()}
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, str):
        if _TIMES.match(value):
            return "<time>"
        text = _TIME_SUFFIX.sub("-<minute>", _UID.sub("<uid>", value))
        return _SUFFIX.sub("-<end>", _HASH.sub("-<hash>", text))
    return value


async def seen(cluster: WorkloadCluster, *kinds: str, names: Mapping[str, str] | None = None) -> dict[str, list[Any]]:
    """Return the objects of the namespace, masked and sorted; `names` are texts to replace everywhere before."""
    found: dict[str, list[Any]] = {}
    for kind in kinds:
        rows = [_bare(kind, _renamed(one, names or {})) for one in await cluster.all(kind) if one.name != "kubernetes"]
        found[kind] = sorted(rows, key=_order)
    return found


def _renamed(row: Unstructured, names: Mapping[str, str]) -> Unstructured:
    text = json.dumps(row)
    for old, new in names.items():
        text = text.replace(old, new)
    return Unstructured(json.loads(text))


def _bare(kind: str, row: Unstructured) -> dict[str, Any]:
    """Drop fields that are not written by controllers, or depend on the speed of a kubelet; add the field managers."""
    bare = {key: masked(one) for key, one in row.items() if key not in ("apiVersion", "kind")}
    managers = {(one["manager"], one["operation"], one.get("subresource", "")) for one in row.metadata["managedFields"]}
    bare["managers"] = [list(one) for one in sorted(managers)]
    bare["metadata"].pop("generateName", None)
    if kind == "persistentvolumeclaims":
        del bare["status"]
    if kind == "pods":
        del bare["spec"]
        bare["metadata"]["labels"].pop("topology.kubernetes.io/zone", None)
    if kind == "endpointslices.discovery.k8s.io":
        del bare["metadata"]["generation"]
        bare["endpoints"] = sorted(bare["endpoints"] or [], key=_order)  # a real controller keeps the order of arrival
    if kind == "deployments.apps":
        for condition in bare["status"].get("conditions", ()):
            # Which of the two is seen at the start of a rollout is a race.
            if condition["reason"] in ("NewReplicaSetCreated", "ReplicaSetUpdated"):
                condition |= {"reason": "<under way>", "message": ""}
    if kind == "replicasets.apps":
        bare["followed"] = bare["metadata"].pop("generation") == bare["status"].pop("observedGeneration", 0)
    return bare


def _order(row: Any) -> str:
    return json.dumps(row, sort_keys=True)


async def event_messages(cluster: WorkloadCluster) -> list[str]:
    """Return the events of the namespace: kind, type, reason and message, each once.

    MissingJob is left out for Jobs that the CronJob controller deleted itself. By its source, the real one writes it
    when it sees the deletion while its cached CronJob still has the Job in its status; ours reads its own writes.
    """
    found = set()
    events = await cluster.all("events")
    deleted = {_last_word(one["message"]) for one in events if one["reason"] == "SuccessfulDelete"}
    for one in events:
        if one["reason"] == "MissingJob" and _last_word(one["message"]) in deleted:
            continue
        about = one["involvedObject"]
        found.add(masked(f"{about['kind']} {about['name']}: {one['type']} {one['reason']}: {one['message']}"))
    return sorted(found)


def _last_word(message: str) -> str:
    return message.rpartition(" ")[2]
