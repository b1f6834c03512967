"""The MyApp operator on a real control plane: generated permissions, simulated nodes, Databases in memory.

The embedded one runs the same life in test_myapp.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import yaml

from databases import storage_class
from konverge import Client, ObjectMeta, Unstructured, load_config
from konverge.cli.manifests import Release, files_of
from konverge.client import exists, is_deleted
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Namespace, ServiceAccount
from konverge.manager import Operator
from konverge.testing import ControlPlane
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.dependents import DATABASE
from my_apps import NAME, condition, my_app, operators, sample
from volume_clusters import provisioner

pytestmark = [
    pytest.mark.control_plane,
    pytest.mark.real_time,
    pytest.mark.plain_loop,  # asyncio in debug mode takes most of the time
    pytest.mark.usefixtures("control_plane"),
]

LIMIT = 150.0
HOME, NAMESPACE = "myapp-system", "production"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
SPEC = {"version": "18", "storageClassName": "fast"}


async def install(client: Client, operator: Operator) -> None:
    """Install what `konverge manifests` writes for an operator."""
    files = files_of(Release(operator=operator, target=operator.name, namespace=HOME, image="m:1"))
    for name in ("namespace", "rbac", "operator", "crds"):
        for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
            await client.apply(Unstructured(one), force=True)


@asynccontextmanager
async def operating(plane: ControlPlane, *parts: Operator) -> AsyncGenerator[None]:
    """Run operators, each as its own service account."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    async with AsyncExitStack() as running:
        for one in parts:
            account = plane.kubeconfig_for(f"system:serviceaccount:{HOME}:{one.name}", groups=groups)
            await running.enter_async_context(one.manager(load_config(kubeconfig=account)).running())
        yield


async def wait(client: Client, fact: Callable[[MyApp], bool], name: str = NAME) -> MyApp:
    def holds(app: Any) -> bool:
        return app is not None and app.status.observed_generation == app.metadata.generation and fact(app)

    found = await client.wait_for(MyApp, name, holds, timeout=LIMIT)
    assert found is not None
    return found


def runs(app: MyApp) -> bool:
    return app.status.phase is Phase.RUNNING


def says(type_: str, text: str) -> Callable[[MyApp], bool]:
    return lambda app: any(one.type == type_ and text in one.message for one in app.status.conditions)


@pytest.mark.parametrize("together", [True, False], ids=["one manager", "a manager each"])
async def test_the_life_of_applications(together: bool) -> None:
    engine = InMemoryEngine()
    parts = tuple(operators(engine).values())
    if together:
        parts = (Operator.combine("all-operators", *parts),)
    with ControlPlane(controller_manager=True) as plane:
        async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin:
            engine.server = admin
            for one in parts:
                await install(admin, one)
            await admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE, labels=RESTRICTED)))
            await admin.create(storage_class())
            client = admin.using(namespace=NAMESPACE)
            await client.wait_for(ServiceAccount, "default", exists(), timeout=LIMIT)
            async with provisioner(admin), SimulatedNodes(admin, nodes=2).running(), operating(plane, *parts):
                await the_sample_gets_three_ready_replicas(client)
                await a_refused_spec_is_reported_and_corrected(client)
                await a_retained_database_is_taken_over(client)
    assert not engine.violations
    assert list(engine.initializations.values()) == [1]


async def the_sample_gets_three_ready_replicas(client: Client) -> None:
    await client.create(sample("myapp.yaml"))
    await wait(client, lambda app: runs(app) and app.status.ready_replicas == 3, "myapp-instance")
    await client.delete(MyApp, "myapp-instance")
    await client.wait_for(MyApp, "myapp-instance", is_deleted(), timeout=LIMIT)


async def a_refused_spec_is_reported_and_corrected(client: Client) -> None:
    app = my_app(database={"spec": {**SPEC, "synchronous": "strict"}})
    app.metadata.namespace = NAMESPACE
    await client.create(app)
    await wait(client, says("DatabaseReady", "synchronous: strict needs 2 replicas or more"))
    await client.patch(MyApp, NAME, {"spec": {"database": {"spec": {"synchronous": None, "storagSize": "2Gi"}}}})
    await wait(client, says("DatabaseReady", ".spec.storagSize: field not declared in schema"))
    await client.patch(MyApp, NAME, {"spec": {"database": {"spec": {"storagSize": None}}}})
    found = await wait(client, runs)
    assert condition(found, "Ready")[0] == "True"


async def a_retained_database_is_taken_over(client: Client) -> None:
    before = await client.get(DATABASE, f"{NAME}-database")
    await client.delete(MyApp, NAME)
    await client.wait_for(MyApp, NAME, is_deleted(), timeout=LIMIT)
    await client.wait_for(Deployment, NAME, is_deleted(), timeout=LIMIT)
    second = my_app("second", database={"existing": before.name}, cache=None)
    second.metadata.namespace = NAMESPACE
    await client.create(second)
    await wait(client, runs, "second")
    after = await client.get(DATABASE, before.name)
    assert (after.uid, "ownerReferences" in after.metadata) == (before.uid, False)
