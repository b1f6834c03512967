"""The shops of the controller benchmark on a real server: create, change at a constant rate, check."""

from __future__ import annotations

import asyncio

from load import each, ignore_existing

from konverge.client import Client, has_condition
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Namespace, Service
from konverge.objects import Key, Kind, ObjectMeta, Unstructured

__all__ = ["NAMESPACE", "SHOP", "change", "check", "load", "prepare"]

SHOP = Kind("bench.example.com", "v1", "Shop", "shops")
NAMESPACE = "bench"

_INTEGER = {"type": "integer"}
_SPEC = {"type": "object", "properties": {"image": {"type": "string"}, "replicas": _INTEGER}}
_STATUS = {
    "type": "object",
    "properties": {"observedGeneration": _INTEGER, "ready": _INTEGER},
    "x-kubernetes-preserve-unknown-fields": True,  # kopf stores its progress there
}


async def prepare(client: Client) -> None:
    """Create the CRD and the namespace."""
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
    await ignore_existing(client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE))))
    await ignore_existing(client.create(crd))
    await client.wait_for(CustomResourceDefinition, "shops.bench.example.com", has_condition("Established"))
    await asyncio.sleep(3)  # the server serves a new kind only after a delay


async def load(client: Client, count: int) -> None:
    """Create `count` shops."""

    async def put(number: int) -> None:
        metadata = {"name": f"shop-{number}", "namespace": NAMESPACE}
        spec = {"image": "example/shop:1", "replicas": 1}
        await client.create(Unstructured(apiVersion="bench.example.com/v1", kind="Shop", metadata=metadata, spec=spec))

    await each(range(count), put)


async def change(client: Client, numbers: range, *, replicas: int, per_second: float) -> None:
    """Change each of these shops once, at a constant rate, whether or not the server keeps up."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    async with asyncio.TaskGroup() as group:
        for index, number in enumerate(numbers):
            await asyncio.sleep(max(0.0, begin + index / per_second - clock()))
            key = Key(NAMESPACE, f"shop-{number}")
            group.create_task(client.patch(SHOP, key, {"spec": {"replicas": replicas}}))


async def check(client: Client, count: int) -> None:
    """Check that every shop has its children as specified, and a current status.

    Raises: SystemExit with the first few that do not.
    """
    shops = await client.list(SHOP, namespace=NAMESPACE)
    deployments = {one.name: one for one in await client.list(Deployment, namespace=NAMESPACE)}
    services = {one.name for one in await client.list(Service, namespace=NAMESPACE)}
    incomplete = [shop.name for shop in shops if not _is_done(shop, deployments.get(shop.name), services)]
    if len(shops) != count or incomplete:
        raise SystemExit(f"{len(shops)} shops of {count}, {len(incomplete)} not done: {incomplete[:5]}")


def _is_done(shop: Unstructured, deployment: Deployment | None, services: set[str]) -> bool:
    observed = shop.get("status", {}).get("observedGeneration")
    replicas = deployment.spec.replicas if deployment is not None and deployment.spec else None
    desired = (shop["metadata"]["generation"], shop["spec"]["replicas"])
    return (observed, replicas) == desired and shop.name in services
