"""The shops of the controller benchmark on a real server: made, changed at a steady pace, looked at, cleared away."""

from __future__ import annotations

import asyncio

from load import each, unless_there

from konverge.client import Client, condition
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Namespace, Service
from konverge.objects import Key, Kind, ObjectMeta, Unstructured

__all__ = ["NAMESPACE", "SHOP", "change", "check", "clear", "load", "prepare"]

SHOP = Kind("bench.example.com", "v1", "Shop", "shops")
NAMESPACE = "bench"

_INTEGER = {"type": "integer"}
_SPEC = {"type": "object", "properties": {"image": {"type": "string"}, "replicas": _INTEGER}}
_STATUS = {
    "type": "object",
    "properties": {"observedGeneration": _INTEGER, "ready": _INTEGER},
    "x-kubernetes-preserve-unknown-fields": True,  # kopf keeps its progress there
}


async def prepare(client: Client) -> None:
    """Make the kind and the namespace."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
    }
    spec = {
        "group": SHOP.group,
        "scope": "Namespaced",
        "names": {"kind": "Shop", "plural": "shops"},
        "versions": [version],
    }
    crd = Unstructured(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": "shops.bench.example.com"},
        spec=spec,
    )
    await unless_there(client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE))))
    await unless_there(client.create(crd))
    await client.wait_for(CustomResourceDefinition, "shops.bench.example.com", condition("Established"))
    await asyncio.sleep(3)  # the server answers for a new kind only after a while


async def load(client: Client, count: int) -> None:
    """Create so many shops."""

    async def put(number: int) -> None:
        metadata = {"name": f"shop-{number}", "namespace": NAMESPACE}
        spec = {"image": "example/shop:1", "replicas": 1}
        await client.create(Unstructured(apiVersion="bench.example.com/v1", kind="Shop", metadata=metadata, spec=spec))

    await each(range(count), put)


async def change(client: Client, numbers: range, *, replicas: int, per_second: float) -> None:
    """Change each of these shops once, so many a second, whether or not the server keeps up."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    async with asyncio.TaskGroup() as group:
        for place, number in enumerate(numbers):
            await asyncio.sleep(max(0.0, begin + place / per_second - clock()))
            key = Key(NAMESPACE, f"shop-{number}")
            group.create_task(client.patch(SHOP, key, {"spec": {"replicas": replicas}}))


async def check(client: Client, count: int) -> None:
    """Make sure that every shop has its children as it wants them, and a status that says so.

    Raises: SystemExit with the first few that are wrong.
    """
    shops = await client.list(SHOP, namespace=NAMESPACE)
    deployments = {one.name: one for one in await client.list(Deployment, namespace=NAMESPACE)}
    services = {one.name for one in await client.list(Service, namespace=NAMESPACE)}
    wrong = [shop.name for shop in shops if not _is_done(shop, deployments.get(shop.name), services)]
    if len(shops) != count or wrong:
        raise SystemExit(f"{len(shops)} shops of {count}, {len(wrong)} not done: {wrong[:5]}")


def _is_done(shop: Unstructured, deployment: Deployment | None, services: set[str]) -> bool:
    observed = shop.get("status", {}).get("observedGeneration")
    replicas = deployment.spec.replicas if deployment is not None and deployment.spec else None
    wanted = (shop["metadata"]["generation"], shop["spec"]["replicas"])
    return (observed, replicas) == wanted and shop.name in services


async def clear(client: Client) -> None:
    """Delete all shops and all their children: without a controller manager nobody else does."""
    for kind in (SHOP, Deployment, Service):
        await client.delete_collection(kind, namespace=NAMESPACE)
    held = [shop.key for shop in await client.list(SHOP, namespace=NAMESPACE)]

    async def release(place: int) -> None:
        await client.patch(SHOP, held[place], {"metadata": {"finalizers": None}})

    await each(range(len(held)), release)
