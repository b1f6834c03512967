"""The database of an EcommerceApp where the Database operator is installed; the tests play that operator."""

from __future__ import annotations

import asyncio

import pytest

from konverge import Client
from konverge.errors import Invalid
from konverge.k8s.apps.v1 import Deployment, StatefulSet
from konverge.k8s.batch.v1 import CronJob
from konverge.k8s.core.v1 import Secret, Service
from konverge.objects import Unstructured, to_wire
from konverge.schema import crd_for
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import new_operator
from shop_apps import NAME, NAMESPACE, prepare, read_sample, sample

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


async def test_a_mariadb_of_that_operator_is_requested(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(Database))
    await prepare(client)
    async with cluster.operator(new_operator()):
        app = read_sample("mariadb.yaml")
        await client.create(app)
        await cluster.settle()
        database = await client.get(Database, "shop-database", namespace=NAMESPACE)
        assert (database.spec.engine, database.spec.version) == ("mariadb", "10.11")
        assert (database.spec.storage_size, database.spec.replicas) == ("20Gi", 1)


async def test_a_plain_mariadb_has_its_port_its_probes_and_its_dump(cluster: TestCluster) -> None:
    client = cluster.client()
    await prepare(client)
    async with cluster.operator(new_operator()):
        await client.create(read_sample("mariadb.yaml", database={"backup": {"enabled": True}}))
        await cluster.settle()
        secret = await client.get(Secret, "shop-database", namespace=NAMESPACE)
        values = {key: value.decode() for key, value in secret.data.items()}
        assert (values["type"], values["port"]) == ("mysql", "3306")
        assert values["uri"] == f"mysql://shop:{values['password']}@shop-database:3306/shop"
        stored = await client.get(StatefulSet, "shop-database", namespace=NAMESPACE)
        assert stored.spec.template.spec is not None
        (server,) = stored.spec.template.spec.containers
        assert server.image == "mariadb:10.11"
        assert [one.container_port for one in server.ports or []] == [3306]
        assert "mariadb-admin" in to_wire(server)["readinessProbe"]["exec"]["command"][-1]
        assert {one.name for one in server.env or []} >= {"MARIADB_USER", "MARIADB_PASSWORD", "MARIADB_DATABASE"}
        assert {one.mount_path for one in server.volume_mounts or []} == {"/var/lib/mysql", "/run/mysqld", "/tmp"}
        service = await client.get(Service, "shop-database", namespace=NAMESPACE)
        assert [one.port for one in service.spec.ports or []] == [3306]
        job = await client.get(CronJob, "shop-database-backup", namespace=NAMESPACE)
        template = job.spec.job_template.spec.template.spec
        assert template is not None
        (dump,) = template.containers
        assert dump.image == "mariadb:10.11"
        assert "mariadb-dump" in (dump.command or [""])[-1]
        assert "DATABASE_PASSWORD" in {one.name for one in dump.env or []}


@pytest.mark.parametrize(
    ("engine", "version", "is_valid"),
    [
        ("postgresql", "18", True),
        ("postgresql", "18.6", True),
        ("postgresql", "18.6.1", False),
        ("mariadb", "10.11", True),
        ("mariadb", "10.11.19", True),
        ("mariadb", "18", False),
        ("mariadb", "10.11-jammy", False),
        ("mysql", "8.4", False),
    ],
)
async def test_a_version_is_one_of_the_engine(
    cluster: TestCluster, engine: str, version: str, *, is_valid: bool
) -> None:
    client = await cluster.install(crd_for(EcommerceApp))
    await prepare(client, configured=False)
    document = {**to_wire(sample()), "apiVersion": "ecommerce.io/v1", "kind": "EcommerceApp"}
    document["spec"]["database"] |= {"engine": engine, "version": version}
    if is_valid:
        await client.create(Unstructured(document))
    else:
        with pytest.raises(Invalid, match=r"version|engine"):
            await client.create(Unstructured(document))


async def test_the_engine_of_an_application_stays(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(EcommerceApp))
    await prepare(client, configured=False)
    await client.create(sample())
    change = {"spec": {"database": {"engine": "mariadb", "version": "10.11"}}}
    with pytest.raises(Invalid, match="engine"):
        await client.patch(EcommerceApp, NAME, change, namespace=NAMESPACE)


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
