"""The database of an EcommerceApp where the Database operator is installed; the tests play that operator."""

from __future__ import annotations

import asyncio

import pytest

from konverge import Client
from konverge.errors import Invalid
from konverge.k8s.apps.v1 import Deployment, StatefulSet
from konverge.k8s.core.v1 import Secret
from konverge.schema import crd_for
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import new_operator
from shop_apps import NAME, NAMESPACE, prepare, sample

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time

DATABASE, BACKEND = f"{NAME}-database", f"{NAME}-backend"


async def app_of(client: Client) -> EcommerceApp:
    return await client.get(EcommerceApp, NAME, namespace=NAMESPACE)


async def report_ready(client: Client, *, secret: str, ready: bool = True) -> None:
    """Write the status of the Database, as its operator does."""
    database = await client.get(Database, DATABASE, namespace=NAMESPACE)
    condition = {"type": "Ready", "status": str(ready), "reason": "Test", "lastTransitionTime": "2027-01-01T00:00:00Z"}
    status = {"connectionSecret": secret, "observedGeneration": database.metadata.generation, "conditions": [condition]}
    await client.patch(Database, DATABASE, {"status": status}, namespace=NAMESPACE, subresource="status")


async def backend_secret(client: Client) -> str:
    backend = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
    assert backend.spec.template.spec is not None
    variables = backend.spec.template.spec.containers[0].env or []
    source = next(one.value_from for one in variables if one.name == "DATABASE_URL")
    assert source is not None
    assert source.secret_key_ref is not None
    return source.secret_key_ref.name or ""


async def test_a_database_of_that_operator_is_used_and_never_replaced(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(Database))
    await prepare(client)
    async with cluster.operator(new_operator()):
        await client.create(sample())
        await cluster.settle()
        database = await client.get(Database, DATABASE, namespace=NAMESPACE)
        assert (database.spec.version, database.spec.storage_size, database.spec.deletion_policy) == (
            "13.4",
            "100Gi",
            "Retain",
        )
        assert not await client.list(Deployment, namespace=NAMESPACE), "a new Database without a status is not ready"
        await report_ready(client, secret="app-login")
        await cluster.settle()
        assert (await app_of(client)).status.phase is Phase.RUNNING
        assert await backend_secret(client) == "app-login"

        before = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
        await report_ready(client, secret="app-login", ready=False)
        await cluster.settle()
        assert (await app_of(client)).status.phase is Phase.DEGRADED
        await client.delete("customresourcedefinitions", "databases.example.com")
        await asyncio.sleep(120)
        after = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
        assert after.metadata.generation == before.metadata.generation
        assert not await client.list(StatefulSet, namespace=NAMESPACE)
        assert (await app_of(client)).status.database_kind == "Database"


async def test_a_stateful_set_is_kept_when_that_operator_is_installed_later(cluster: TestCluster) -> None:
    client = cluster.client()
    await prepare(client)
    async with cluster.operator(new_operator()):
        await client.create(sample())
        await cluster.settle()
        before = await client.get(StatefulSet, DATABASE, namespace=NAMESPACE)
        await client.create(crd_for(Database))
        await asyncio.sleep(120)
        await cluster.settle()
    async with cluster.operator(new_operator()):  # a new process sees the kind from its start
        await cluster.settle()
        after = await client.get(StatefulSet, DATABASE, namespace=NAMESPACE)
        assert after.uid == before.uid
        assert not await client.list(Database, namespace=NAMESPACE)
        assert await backend_secret(client) == DATABASE
        assert await client.get(Secret, DATABASE, namespace=NAMESPACE)
        assert (await app_of(client)).status.phase is Phase.RUNNING


@pytest.mark.parametrize(("name", "message"), [("a" * 37, "too long"), ("a.b", "no dots"), ("3d", "a letter first")])
async def test_a_name_that_does_not_suit_the_children_is_refused(cluster: TestCluster, name: str, message: str) -> None:
    client = await cluster.install(crd_for(EcommerceApp))
    await prepare(client, configured=False)
    app = sample()
    app.metadata.name = name
    with pytest.raises(Invalid, match=message):
        await client.create(app)


async def test_the_longest_name_runs(cluster: TestCluster) -> None:
    client = cluster.client()
    await prepare(client, configured=False)
    app = sample(security={"authentication": {"enabled": False}}, backend={"migrations": {"command": ["migrate"]}})
    app.metadata.name = "a" * 36
    async with cluster.operator(new_operator()):
        await client.create(app)
        await cluster.settle()
        assert (await client.get(EcommerceApp, "a" * 36, namespace=NAMESPACE)).status.phase is Phase.RUNNING
