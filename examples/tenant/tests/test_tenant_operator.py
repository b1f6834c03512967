"""The whole operator on an embedded cluster, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from konverge import Client, Key, ObjectMeta, Quantity, is_ready
from konverge.errors import Forbidden, Invalid
from konverge.k8s.core.v1 import ConfigMap, Namespace, ResourceQuota, Secret
from konverge.webhooks import round_trip_changes
from konverge_cluster.testing import Simulation, TestCluster, simulate
from tenant_operator.api import Profile, ProfileSpec, Tenant, TenantSpec
from tenant_operator.beta import BetaTenant, BetaTenantSpec, conversion
from tenant_operator.billing import POLL_SECONDS, Billing
from tenant_operator.operator import make_operator
from tenant_operator.reconciler import SYSTEM_NAMESPACE


def profile(name: str = "small", pods: int = 5) -> Profile:
    return Profile(metadata=ObjectMeta(name=name), spec=ProfileSpec(pods=pods))


def tenant(
    name: str = "acme", *, registry: str | None = None, contacts: tuple[str, ...] = ("ops@acme.example",)
) -> Tenant:
    spec = TenantSpec(owner=name, profile="small", registry=registry, contacts=list(contacts))
    return Tenant(metadata=ObjectMeta(name=name), spec=spec)


def registry(user: str) -> Secret:
    metadata = ObjectMeta(name="registry", namespace=SYSTEM_NAMESPACE)
    return Secret(metadata=metadata, data={"username": user.encode()})


async def change_registry_user(client: Client, user: str) -> None:
    await client.patch(Secret, Key(SYSTEM_NAMESPACE, "registry"), {"stringData": {"username": user}})


@asynccontextmanager
async def running(cluster: TestCluster, billing: Billing | None = None) -> AsyncGenerator[Client]:
    """Run the operator, and yield the client of a user."""
    async with cluster.operator(make_operator(billing or Billing())):
        client = cluster.client()
        await client.create(Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)))
        yield client


async def pods_of(client: Client, name: str) -> Quantity:
    quota = await client.get(ResourceQuota, Key(f"tenant-{name}", "tenant"))
    assert quota.spec is not None
    return Quantity.from_wire(quota.spec.hard["pods"])


async def registry_user(client: Client, name: str) -> str:
    return (await client.get(ConfigMap, Key(f"tenant-{name}", "tenant"))).data["registry-user"]


async def test_a_tenant_gets_a_namespace_with_a_quota_and_settings(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(profile())
        await client.create(tenant())
        await cluster.settle()

        assert await pods_of(client, "acme") == Quantity("5")
        assert await registry_user(client, "acme") == ""
        found = await client.get(Tenant, "acme")
        assert is_ready(found)
        assert found.status.namespace == "tenant-acme"


async def test_all_tenants_of_a_profile_follow_it(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(tenant("acme"))
        await client.create(tenant("initech"))
        await cluster.settle()
        assert not is_ready(await client.get(Tenant, "acme"))  # there is no profile yet

        await client.create(profile(pods=5))
        await cluster.settle()
        assert is_ready(await client.get(Tenant, "acme"))

        await client.patch(Profile, "small", {"spec": {"pods": 7}})
        await cluster.settle()
        assert [await pods_of(client, name) for name in ("acme", "initech")] == [Quantity(7), Quantity(7)]


async def test_a_new_secret_is_noticed_by_the_tenants_that_refer_to_it(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(profile())
        await client.create(tenant("acme", registry="registry"))
        await client.create(tenant("initech"))
        await client.create(registry("alice"))
        await cluster.settle()
        assert await registry_user(client, "acme") == "alice"

        await change_registry_user(client, "bob")
        await cluster.settle()
        assert await registry_user(client, "acme") == "bob"
        assert await registry_user(client, "initech") == ""


async def test_a_tenant_is_suspended_until_it_pays(cluster: TestCluster) -> None:
    billing = Billing()
    async with running(cluster, billing) as client:
        await client.create(profile())
        await client.create(tenant())
        await cluster.settle()

        billing.overdue.add("acme")
        await asyncio.sleep(POLL_SECONDS + 1)
        assert await pods_of(client, "acme") == Quantity(0)
        assert (await client.get(Tenant, "acme")).status.suspended

        billing.overdue.clear()
        await asyncio.sleep(POLL_SECONDS + 1)
        assert await pods_of(client, "acme") == Quantity(5)


async def test_a_deleted_namespace_comes_back_with_its_contents(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(profile())
        await client.create(tenant())
        await cluster.settle()
        before = await client.get(Namespace, "tenant-acme")

        await client.delete(Namespace, "tenant-acme")
        await cluster.settle()
        assert (await client.get(Namespace, "tenant-acme")).uid != before.uid
        assert await pods_of(client, "acme") == Quantity(5)


async def test_everything_of_a_deleted_tenant_is_deleted(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(profile())
        await client.create(tenant())
        await cluster.settle()
        await client.delete(Tenant, "acme")
        await cluster.settle()
        assert "tenant-acme" not in [each.name for each in await client.list(Namespace)]
        assert await client.list(ResourceQuota, namespace="tenant-acme") == []


async def test_invalid_tenants_are_rejected(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        with pytest.raises(Invalid, match="a contact needs an @"):
            await client.create(tenant(contacts=("ops@acme.example", "nobody")))
        await client.create(tenant())
        with pytest.raises(Invalid, match="the owner cannot be changed"):
            await client.patch(Tenant, "acme", {"spec": {"owner": "initech"}})


async def test_a_protected_tenant_is_not_deleted(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(tenant())
        await client.patch(Tenant, "acme", {"metadata": {"annotations": {"example.com/keep": "true"}}})
        with pytest.raises(Forbidden, match="it is protected"):
            await client.delete(Tenant, "acme")


async def test_an_old_version_is_converted_and_reconciled(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(profile())
        spec = BetaTenantSpec(owner="acme", plan="small", contact="ops@acme.example")
        await client.create(BetaTenant(metadata=ObjectMeta(name="acme"), spec=spec))
        await cluster.settle()

        stored = await client.get(Tenant, "acme")
        assert (stored.spec.profile, stored.spec.contacts) == ("small", ["ops@acme.example"])
        assert is_ready(stored)
        assert (await client.get(BetaTenant, "acme")).status.namespace == "tenant-acme"


async def test_an_edit_of_the_old_version_keeps_all_contacts(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(tenant(contacts=("a@acme.example", "b@acme.example")))
        await client.patch(BetaTenant, "acme", {"spec": {"plan": "large"}})
        stored = await client.get(Tenant, "acme")
        assert stored.spec.profile == "large"
        assert stored.spec.contacts == ["a@acme.example", "b@acme.example"]
        assert stored.metadata.annotations == {}


@pytest.mark.parametrize("contacts", [(), ("a@acme.example",), ("a@acme.example", "b@acme.example")])
def test_conversion_is_lossless(contacts: tuple[str, ...]) -> None:
    assert round_trip_changes(conversion, tenant(contacts=contacts, registry="registry")) == []


SAMPLES = (
    Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)),
    profile(),
    registry("alice"),
    tenant("acme", registry="registry"),
    tenant("initech"),
)


@simulate(make_operator, external=Billing, samples=SAMPLES, seeds=10)
async def test_tenants_under_faults(sim: Simulation[Billing]) -> None:
    await sim.client.patch(Profile, "small", {"spec": {"pods": 7}})
    await sim.settle()
    await change_registry_user(sim.client, "bob")
    sim.external.overdue.add("initech")
    await sim.settle()
    await sim.client.delete(Tenant, "acme")
