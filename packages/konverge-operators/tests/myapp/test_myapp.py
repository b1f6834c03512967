"""The MyApp operator on an embedded cluster, with the other operators in one manager and in managers of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from databases import database as new_database
from konverge.errors import Invalid, NotFound
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.core.v1 import EnvVar, PersistentVolumeClaim, Secret
from konverge.schema import crd_for
from konverge.workflow import check_phases
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.dependents import CACHES, DATABASE
from konverge_operators.myapp.operator import new_operator, workflow
from my_apps import NAME, SAMPLES, World, condition, my_app, running, sample

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time

both = pytest.mark.parametrize("together", [True, False], ids=["one manager", "a manager each"])
DATABASE_NAME = f"{NAME}-database"


def database(name: str) -> Database:
    found = new_database()
    found.metadata.name = name
    return found


def variables(deployment: Deployment) -> dict[str, EnvVar]:
    assert deployment.spec.template.spec is not None
    return {one.name: one for one in deployment.spec.template.spec.containers[0].env or []}


def references(deployment: Deployment) -> dict[str, tuple[str, str]]:
    """Return Secret and key of each variable that refers to one."""
    found = {}
    for name, one in variables(deployment).items():
        if one.value_from is not None:
            assert one.value_from.secret_key_ref is not None
            found[name] = (one.value_from.secret_key_ref.name or "", one.value_from.secret_key_ref.key)
    return found


async def rolls(world: World) -> int:
    """Return how many pod templates the application has had."""
    every = await world.client.list(ReplicaSet, namespace="default")
    return len([one for one in every if one.name.startswith(f"{NAME}-") and "cache" not in one.name])


def test_every_phase_is_reached_and_left() -> None:
    check_phases(workflow, [my_app(), my_app(database=None, cache=None)])


async def test_the_sample_runs_without_any_other_operator(cluster: TestCluster) -> None:
    async with cluster.operator(new_operator()):
        await cluster.client().create(sample("myapp.yaml"))
        await cluster.settle()
        found = await cluster.client("default").get(MyApp, "myapp-instance")
        assert (found.status.phase, found.status.ready_replicas) == (Phase.RUNNING, 3)
        assert {one.type for one in found.status.conditions} == {
            "Ready",
            "Reconciling",
            "Stalled",
            "ApplicationReady",
        }


@both
async def test_an_application_is_bound_to_its_database_and_its_cache_by_reference(
    cluster: TestCluster, together: bool
) -> None:
    async with running(cluster, together=together) as world:
        bindings = {"database": {"DATABASE_URL": "uri", "DB_USER": "username"}, "cache": {"CACHE_HOST": "host"}}
        app = await world.create(my_app(bindings=bindings, replicas=2))
        assert (app.status.phase, app.status.ready_replicas) == (Phase.RUNNING, 2)
        deployment = await world.deployment()
        assert references(deployment) == {
            "DATABASE_URL": (f"{DATABASE_NAME}-app", "uri"),
            "DB_USER": (f"{DATABASE_NAME}-app", "username"),
            "CACHE_HOST": (f"{NAME}-cache", "host"),
        }
        assert {one.name: one.value for one in variables(deployment).values() if one.value} == {"PORT": "8080"}
        assert app.status.connections == {"database": f"{DATABASE_NAME}-app", "cache": f"{NAME}-cache"}
        assert await rolls(world) == 1, "it is created when database and cache are ready"
        assert (await world.database())["spec"]["deletionPolicy"] == "Retain"


@both
async def test_new_credentials_roll_the_application_once(cluster: TestCluster, together: bool) -> None:
    async with running(cluster, together=together) as world:
        await world.create(my_app())
        request = {"metadata": {"annotations": {"example.com/rotate-password": "now"}}}
        before = (await world.client.get(Secret, f"{DATABASE_NAME}-app")).data
        await world.client.patch(DATABASE, DATABASE_NAME, request)
        await asyncio.sleep(1800)  # longer than the old login is valid
        assert (await world.client.get(Secret, f"{DATABASE_NAME}-app")).data != before
        assert (await world.app()).status.phase is Phase.RUNNING
        assert await rolls(world) == 2
        await world.client.patch(Secret, f"{DATABASE_NAME}-app", {"stringData": {"note": "nothing refers to it"}})
        await world.settle()
        assert await rolls(world) == 2


async def test_a_missing_kind_is_named_until_it_is_installed(cluster: TestCluster) -> None:
    async with cluster.operator(new_operator()):
        client = cluster.client("default")
        await client.create(my_app(cache={"kind": "RedisCluster"}))
        await cluster.settle()
        app = await client.get(MyApp, NAME)
        status, reason, message = condition(app, "DatabaseReady")
        assert (status, reason) == ("False", "KindNotServed")
        assert message.startswith("the CustomResourceDefinition databases.example.com is not installed")
        assert "redisclusters.redis.example.com" in condition(app, "CacheReady")[2]
        assert app.status.phase is Phase.CREATING
        assert not await client.list(Deployment, namespace="default")
        await client.patch(MyApp, NAME, {"spec": {"cache": None}})
        async with running(cluster, together=False):  # a second MyApp operator does not matter here
            await asyncio.sleep(120)
            await cluster.settle()
            assert (await client.get(MyApp, NAME)).status.phase is Phase.RUNNING


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicas": 2}, "Required value, at .spec.version"),
    ({"version": "18", "synchronous": "strict"}, "synchronous: strict needs 2 replicas or more"),
    ({"version": "18", "storagSize": "5Gi"}, ".spec.storagSize: field not declared in schema"),
    ({"version": "18", "parameters": {"port": "1"}}, "parameters.port: the operator sets it"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
async def test_what_the_other_operator_refuses_is_in_a_condition(
    cluster: TestCluster, spec: dict[str, Any], message: str
) -> None:
    async with running(cluster, together=False) as world:
        app = await world.create(my_app(database={"spec": spec}))
        assert message in condition(app, "DatabaseReady")[2]
        assert message in condition(app, "Ready")[2]
        assert app.status.phase is Phase.FAILED
        assert not await world.client.list(Deployment, namespace="default", labels="app.kubernetes.io/name=myapp")
        merge = {**dict.fromkeys(spec), "version": "18"}
        assert (await world.edit(database={"spec": merge})).status.phase is Phase.RUNNING


@both
async def test_an_existing_database_is_used_and_never_written(cluster: TestCluster, together: bool) -> None:
    async with running(cluster, together=together) as world:
        app = await world.create(my_app(database={"existing": "orders"}, deletionPolicy="Delete"))
        assert condition(app, "DatabaseReady") == ("False", "DatabaseNotFound", "Database orders does not exist")
        await world.client.create(database("orders"))
        app = await world.app()
        assert app.status.phase is Phase.RUNNING
        assert references(await world.deployment())["DATABASE_URL"] == ("orders-app", "uri")
        before = await world.database("orders")
        await world.delete()
        after = await world.database("orders")
        assert (after.uid, after.metadata["generation"]) == (before.uid, before.metadata["generation"])
        assert "ownerReferences" not in after.metadata
        managers = {one["manager"] for one in after.metadata["managedFields"] if "subresource" not in one}
        assert "myapp-operator" not in managers


@both
async def test_a_retained_database_is_taken_over(cluster: TestCluster, together: bool) -> None:
    async with running(cluster, together=together) as world:
        await world.create(my_app())
        first = await world.database()
        assert first.metadata["ownerReferences"][0]["name"] == NAME
        await world.delete()
        kept = await world.database()
        assert kept.uid == first.uid
        assert "ownerReferences" not in kept.metadata
        assert f"DatabaseRetained: Database {DATABASE_NAME} is kept, with its data" in await world.events()
        with pytest.raises(NotFound):
            await world.client.get(CACHES["Cache"], f"{NAME}-cache")

        second = await world.create(my_app("second", database={"existing": DATABASE_NAME}, deletionPolicy="Delete"))
        assert second.status.phase is Phase.RUNNING
        await world.delete("second")
        again = await world.create(my_app(database={"spec": {"version": "18", "replicas": 2}}))
        assert again.status.phase is Phase.RUNNING
        adopted = await world.database()
        assert (adopted.uid, adopted.metadata["ownerReferences"][0]["name"]) == (first.uid, NAME)
        assert list(world.engine.initializations.values()) == [1]


@both
async def test_the_policy_delete_deletes_database_and_data(cluster: TestCluster, together: bool) -> None:
    async with running(cluster, together=together) as world:
        await world.create(my_app(deletionPolicy="Delete"))
        assert len(await world.client.list(PersistentVolumeClaim, namespace="default")) == 1
        await world.delete()
        await asyncio.sleep(120)
        for kind in (MyApp, PersistentVolumeClaim, Secret, Deployment):
            assert not await world.client.list(kind, namespace="default"), kind
        assert not await world.client.list(DATABASE, namespace="default")


async def test_a_created_database_that_becomes_the_existing_one_is_not_deleted(cluster: TestCluster) -> None:
    async with running(cluster, together=False) as world:
        await world.create(my_app(deletionPolicy="Delete"))
        first = await world.database()
        app = await world.edit(database={"spec": None, "existing": DATABASE_NAME})
        assert app.status.phase is Phase.RUNNING
        assert await rolls(world) == 1
        await world.delete()
        assert (await world.database()).uid == first.uid


async def test_a_database_that_is_no_longer_wanted_is_released_after_the_application_has_rolled(
    cluster: TestCluster,
) -> None:
    async with running(cluster, together=False) as world:
        await world.create(my_app())
        await world.edit(suspend=True, database=None, cache=None)
        assert (await world.database()).metadata["ownerReferences"]
        app = await world.edit(suspend=False)
        assert app.status.phase is Phase.RUNNING
        assert [one.name for one in app.status.components] == ["application"]
        assert references(await world.deployment()) == {}
        assert "ownerReferences" not in (await world.database()).metadata
        assert not await world.client.list(CACHES["Cache"], namespace="default")


async def test_a_stopped_database_operator_changes_nothing_and_is_reported(cluster: TestCluster) -> None:
    async with running(cluster, together=False) as world:
        await world.create(my_app())
        await world.stop("database")
        before = await world.deployment()
        assert (await world.app()).status.phase is Phase.RUNNING
        await world.edit(database={"spec": {"replicas": 2}})
        await asyncio.sleep(3600)
        app = await world.app()
        status, reason, message = condition(app, "DatabaseReady")
        assert (status, reason) == ("False", "RollingOut")
        assert message == f"Database {DATABASE_NAME}: its operator has not observed generation 2 yet: does it run?"
        assert (await world.deployment()).metadata.generation == before.metadata.generation
        await world.edit(image="shop:2")
        after = await world.deployment()
        assert after.metadata.generation != before.metadata.generation, "the application itself goes on"


async def test_a_lost_secret_or_key_changes_no_pod(cluster: TestCluster) -> None:
    async with running(cluster, together=False) as world:
        await world.create(my_app(bindings={"database": {"URL": "uri", "TOKEN": "token"}}))
        status, reason, message = condition(await world.app(), "ApplicationReady")
        assert (status, reason) == ("False", "KeyMissing")
        assert message.startswith(f"Secret {DATABASE_NAME}-app has no key token: it has database, host,")
        app = await world.edit(bindings={"database": {"TOKEN": None}})
        assert app.status.phase is Phase.RUNNING
        await world.stop("redis")
        secret = await world.client.get(Secret, f"{NAME}-cache")
        await world.client.delete(secret)
        app = await world.app()
        assert condition(app, "ApplicationReady")[1] == "SecretMissing"
        assert (app.status.phase, app.status.ready_replicas) == (Phase.DEGRADED, 1)
        assert await rolls(world) == 1


async def test_a_database_of_another_owner_is_not_adopted(cluster: TestCluster) -> None:
    async with running(cluster, together=False) as world:
        other = await world.client.create(my_app("other", suspend=True))
        taken = database(DATABASE_NAME)
        owner = {"apiVersion": "myapp.example.com/v1", "kind": "MyApp", "name": "other", "uid": other.uid}
        await world.client.create(taken)
        change = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
        await world.client.patch(DATABASE, DATABASE_NAME, change)
        app = await world.create(my_app())
        assert "its controller is MyApp other" in condition(app, "DatabaseReady")[2]
        assert app.status.phase is Phase.FAILED


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"database": {}}, "write either spec, for a new one, or existing"),
        ({"database": {"existing": "a", "spec": {}}}, "write either spec, for a new one, or existing"),
        ({"bindings": {"database": {"URL": "uri"}, "cache": {"URL": "uri"}}}, "use the same name"),
        ({"bindings": {"database": {"PORT": "uri"}}}, "other than PORT"),
        ({"bindings": {"cache": {"A=B": "uri"}}}, "names of environment variables"),
    ],
)
async def test_the_rules_of_the_schema(cluster: TestCluster, spec: dict[str, Any], message: str) -> None:
    client = await cluster.install(crd_for(MyApp))
    with pytest.raises(Invalid, match=message):
        await client.create(my_app(**spec))


async def test_a_name_that_does_not_suit_the_children_is_refused(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(MyApp))
    with pytest.raises(Invalid, match="a letter first, no dots"):
        await client.create(my_app("3d"))
    await client.create(my_app("a" * 36))


def test_the_sample_is_the_one_that_was_asked_for() -> None:
    text = (SAMPLES / "myapp.yaml").read_text()
    assert [line.strip() for line in text.splitlines()][-3:] == ["spec:", "replicas: 3", "image: myapp:v1.0.0"]
