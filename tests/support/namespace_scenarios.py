"""Scenarios of namespaces, for the embedded server with our controller or a real one with its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from konverge import Client, Manager
from konverge.errors import ApiError, NotFound
from konverge.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount
from konverge.objects import ObjectMeta, Unstructured, to_wire
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.namespaces import namespace_controllers
from ownerships import client_of, virtual_clock

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nnot really\n-----END CERTIFICATE-----\n"
HOLD = "test.konverge.dev/hold"


@asynccontextmanager
async def namespace_server() -> AsyncGenerator[tuple[EmbeddedServer, Client]]:
    """Run an embedded server with our namespace controller."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    manager = Manager(client_of(server), name="kube-controller-manager")
    manager.add(*namespace_controllers(root_ca=lambda: CERTIFICATE, clock=virtual_clock))
    async with manager.running():
        yield server, client_of(server)


async def until(claim: Callable[[], Awaitable[Any]], what: str, limit: float = 120) -> Any:
    """Wait until a condition holds, and return its value."""
    end = asyncio.get_running_loop().time() + limit
    while not (found := await claim()):
        assert asyncio.get_running_loop().time() < end, f"{what}: not within {limit} s"
        await asyncio.sleep(0.25)
    return found


async def read(client: Client, kind: Any, name: str, namespace: str | None = None) -> Any:
    try:
        return await client.get(kind, name, namespace=namespace)
    except NotFound:
        return None


async def conditions_of(client: Client, name: str) -> dict[str, tuple[str, str, str]]:
    found = await read(client, Namespace, name)
    if found is None or found.status is None:
        return {}
    return {one.type: (one.status, one.reason or "", one.message or "") for one in found.status.conditions}


async def restore_defaults(client: Client, name: str) -> dict[str, Any]:
    """Create a namespace, delete and change its defaults, and return what is restored."""
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await wait_for_defaults(client, name)
    await client.delete(ServiceAccount, "default", namespace=name)
    await client.delete(ConfigMap, "kube-root-ca.crt", namespace=name)
    await wait_for_defaults(client, name)
    await client.patch(ConfigMap, "kube-root-ca.crt", {"data": {"ca.crt": "spoilt"}}, namespace=name)

    async def is_right() -> bool:
        found = await client.get(ConfigMap, "kube-root-ca.crt", namespace=name)
        return (found.data or {})["ca.crt"] != "spoilt"

    await until(is_right, "the certificate is put right")
    account = await client.get(ServiceAccount, "default", namespace=name)
    authority = await client.get(ConfigMap, "kube-root-ca.crt", namespace=name)
    return {"account": _bare(account), "authority": _bare(authority)}


async def wait_for_defaults(client: Client, name: str) -> None:
    async def has_defaults() -> bool:
        account = await read(client, ServiceAccount, "default", name)
        return account is not None and await read(client, ConfigMap, "kube-root-ca.crt", name) is not None

    await until(has_defaults, "the namespace has what every one has")


async def delete_namespace(client: Client, name: str) -> list[Any]:
    """Delete a namespace that a pod and then a finalizer block, and return its status at each stage."""
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await wait_for_defaults(client, name)
    await client.create(ConfigMap(metadata=ObjectMeta(name="held", namespace=name, finalizers=[HOLD])))
    await client.create(ConfigMap(metadata=ObjectMeta(name="free", namespace=name)))
    pod = await client.create(Unstructured(_pod(name)))
    await client.write_subresource(pod, "binding", _binding(pod))
    await client.delete(Namespace, name)
    stages: list[Any] = []

    async def pod_is_deleted() -> bool:
        found = await read(client, Pod, "p", name)
        return found is not None and found.metadata.deletion_timestamp is not None

    await until(pod_is_deleted, "the pod is told to go")
    await until(lambda: conditions_of(client, name), "the namespace says why")
    stages.append(("a pod remains", await conditions_of(client, name), await _names(client, name)))
    stages.append(("a create", await _refusal(client, name)))
    await client.delete(Pod, "p", namespace=name, grace_period=0)

    async def remains() -> bool:
        return (await conditions_of(client, name))["NamespaceContentRemaining"][0] == "True"

    await until(remains, "the held config map remains")
    stages.append(("a finalizer remains", await conditions_of(client, name), await _names(client, name)))
    await client.patch(ConfigMap, "held", {"metadata": {"finalizers": None}}, namespace=name)

    async def is_gone() -> bool:
        return await read(client, Namespace, name) is None

    await until(is_gone, "the namespace is gone")
    return stages


async def _names(client: Client, name: str) -> list[str]:
    return sorted(one.name for one in await client.list(ConfigMap, namespace=name))


async def _refusal(client: Client, name: str) -> str:
    try:
        await client.create(ConfigMap(metadata=ObjectMeta(name="late", namespace=name)))
    except ApiError as error:
        return str(error)
    return "created"


def _pod(namespace: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 600}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}


def _binding(pod: Unstructured) -> dict[str, Any]:
    metadata = {"name": pod.name, "namespace": pod.namespace}
    target = {"kind": "Node", "name": "nowhere"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def _bare(obj: Any) -> dict[str, Any]:
    wire: dict[str, Any] = to_wire(obj)
    metadata = wire.pop("metadata")
    wire["annotations"] = metadata.get("annotations")
    wire["managers"] = sorted(entry["manager"] for entry in metadata.get("managedFields", ()))
    if "data" in wire:
        wire["data"] = {key: value.split("\n")[0] for key, value in wire["data"].items()}
    return wire
