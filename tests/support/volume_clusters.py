"""Clusters with the controllers of volumes and the simulated provisioner; the test is the scheduler and the kubelet.

Volumes and classes have no namespace: their names begin with the namespace of the scenario, which is masked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import Client, InProcessTransport
from konverge.k8s.core.v1 import Pod
from konverge.manager import Manager
from konverge.objects import Unstructured
from konverge.wire import Transport
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.volumes import provisioner_controllers, volume_controllers
from workload_clusters import NODE, START, WorkloadCluster, masked

__all__ = ["WATCHED", "EmbeddedVolumeCluster", "VolumeCluster", "embedded_volume_cluster", "provisioner"]

WATCHED = ("persistentvolumeclaims", "persistentvolumes", "pods", "events")
CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"


def clock() -> float:
    return START + asyncio.get_running_loop().time()


class VolumeCluster(WorkloadCluster):
    """A namespace of a cluster, and the volumes and classes that begin with its name."""

    def named(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    # Objects

    async def volume(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        """Create a volume, of the class `plain` unless given; `labels`, `annotations`, `claim` are not of its spec."""
        metadata = {"name": self.named(name), "labels": spec.pop("labels", {}), **_annotated(spec)}
        if "claim" in spec:
            spec["claimRef"] = {"namespace": self.namespace, "name": spec.pop("claim")}
        spec["storageClassName"] = self._class(spec.get("storageClassName", "plain"))
        source = {} if spec.keys() & {"csi", "local", "nfs"} else {"hostPath": {"path": "/konverge/none"}}
        whole = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **source, **spec}
        await self.client.create(
            Unstructured({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": whole})
        )

    async def claim(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        """Create a claim, of the class `plain` unless it is given (None for none). That class has no object."""
        metadata = {"name": name, **_annotated(spec)}
        name_of_class = self._class(spec.pop("storageClassName", "plain"))
        if name_of_class is not None:
            spec["storageClassName"] = name_of_class
        if "volumeName" in spec:
            spec["volumeName"] = self.named(spec["volumeName"])
        whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
        await self.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": whole})

    async def storage_class(self, name: str, provisioner: str = "kubernetes.io/no-provisioner", **more: Any) -> None:
        metadata = {"name": self.named(name), **_annotated(more)}
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        await self.client.create(Unstructured({**kind, "metadata": metadata, "provisioner": provisioner, **more}))

    async def pod(self, name: str, *volumes: dict[str, Any]) -> None:
        """Create a pod with volumes."""
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": list(volumes)}
        spec["terminationGracePeriodSeconds"] = 0
        await self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {}}, "spec": spec})

    async def schedule(self, name: str) -> None:
        await self.bind(await self.client.get(Pod, name))
        await self.settle()

    async def resize(self, claim: str, size: str) -> None:
        await self.merge(CLAIMS, claim, {"spec": {"resources": {"requests": {"storage": size}}}})
        await self.settle()

    async def delete(self, kind: str, name: str) -> None:
        await self.client.delete(kind, name if kind in (CLAIMS, "pods") else self.named(name))
        await self.settle()

    def _class(self, name: str | None) -> str | None:
        return self.named(name) if name else name

    # What is there

    async def seen(self) -> dict[str, list[Any]]:
        """Return the claims of the namespace and its volumes, masked."""
        volumes = [one for one in await self.client.list(VOLUMES) if self._is_own(one)]
        return {
            "claims": [self._bare(one) for one in await self.all(CLAIMS)],
            "volumes": sorted((self._bare(one) for one in volumes), key=lambda row: json.dumps(row, sort_keys=True)),
        }

    async def event_messages(self) -> list[str]:
        """Return the events about claims, pods and volumes, each once."""
        found = set()
        events = {one.uid: one for one in (*await self.all("events"), *await self.client.list("events"))}
        for one in events.values():
            about = one["involvedObject"]
            if about.get("namespace") == self.namespace or about["name"].startswith(self.named("")):
                found.add(f"{about['kind']} {about['name']}: {one['type']} {one['reason']}: {one['message']}")
        return sorted(self._text(one) for one in found)

    def _is_own(self, volume: Unstructured) -> bool:
        claim = volume["spec"].get("claimRef") or {}
        return volume.name.startswith(self.named("")) or claim.get("namespace") == self.namespace

    def _bare(self, row: Unstructured) -> dict[str, Any]:
        bare = {key: one for key, one in row.items() if key not in ("apiVersion", "kind")}
        managers = {
            (one["manager"], one["operation"], one.get("subresource", "")) for one in row.metadata["managedFields"]
        }
        bare["managers"] = [list(one) for one in sorted(managers)]
        found: dict[str, Any] = json.loads(self._text(json.dumps(masked(bare))))
        return found

    def _text(self, text: str) -> str:
        return str(
            masked(
                text.replace(self.named(""), "<ns>-")
                .replace(f"{self.namespace}/", "<ns>/")
                .replace(f"_{self.namespace}_", "_<ns>_")
            )
        )


def _annotated(more: dict[str, Any]) -> dict[str, Any]:
    return {"annotations": more.pop("annotations")} if "annotations" in more else {}


class EmbeddedVolumeCluster(VolumeCluster):
    """The embedded server, whose controllers can be stopped and started again."""

    def __init__(self) -> None:
        self.server = EmbeddedServer(clock=clock, seed=1)
        super().__init__(Client(InProcessTransport(self.server.handle)), "default")

    @asynccontextmanager
    async def controllers(self, transport: Transport | None = None) -> AsyncGenerator[None]:
        """Run the controllers of volumes while the block runs."""
        manager = Manager(Client(transport or InProcessTransport(self.server.handle)), name="kube-controller-manager")
        manager.add(*volume_controllers(clock=clock))
        async with manager.running():
            yield


@asynccontextmanager
async def provisioner(client: Client, **options: Any) -> AsyncGenerator[None]:
    """Run the simulated provisioner while the block runs."""
    manager = Manager(client, name="simulated-provisioner")
    manager.add(*provisioner_controllers(**options))
    async with manager.running():
        yield


@asynccontextmanager
async def embedded_volume_cluster() -> AsyncGenerator[EmbeddedVolumeCluster]:
    """Run the embedded server with the controllers of volumes and the provisioner."""
    cluster = EmbeddedVolumeCluster()
    await cluster.client.create(Unstructured(NODE))
    own = Client(InProcessTransport(cluster.server.handle))
    async with cluster.controllers(), provisioner(own, clock=clock):
        yield cluster
