"""The MyApp operator on a real control plane: generated permissions, simulated nodes, Databases in memory.

First all operators are in one manager; then each is a process: the test runs the Database operator, whose engine is in
memory, and `konverge run` the other two. The embedded one runs the same life in test_myapp.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
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
from programs import program
from volume_clusters import provisioner

pytestmark = [
    pytest.mark.control_plane,
    pytest.mark.real_time(limit=600),
    pytest.mark.plain_loop,  # asyncio in debug mode takes most of the time
    pytest.mark.usefixtures("control_plane"),
]

LIMIT = 150.0
HOME = "myapp-system"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
SPEC = {"version": "18", "storageClassName": "fast"}


async def install(client: Client, operator: Operator) -> None:
    """Install what `konverge manifests` writes for an operator."""
    files = files_of(Release(operator=operator, target=operator.name, namespace=HOME, image="m:1"))
    for name in ("namespace", "rbac", "operator", "crds"):
        for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
            await client.apply(Unstructured(one), force=True)


@asynccontextmanager
async def operating(plane: ControlPlane, namespace: str, folder: Path, *parts: Operator) -> AsyncGenerator[None]:
    """Run operators for a namespace, each as its own service account: the first one here, the others as processes."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    accounts = [plane.kubeconfig_for(f"system:serviceaccount:{HOME}:{one.name}", groups=groups) for one in parts]
    with ExitStack() as programs:
        for one, account in zip(parts[1:], accounts[1:], strict=True):
            target = f"konverge_operators.{one.name.removesuffix('-operator')}"
            options = ("--kubeconfig", str(account), "-n", namespace, "--metrics-port", "0", "--log-level", "error")
            programs.enter_context(program("run", target, *options, folder=folder, temporary=folder))
        manager = parts[0].manager(load_config(kubeconfig=accounts[0]), namespaces=(namespace,))
        async with manager.running():
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


async def test_the_life_of_applications(tmp_path: Path) -> None:
    with ControlPlane(controller_manager=True) as plane:
        async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin:
            await admin.create(storage_class())
            async with provisioner(admin), SimulatedNodes(admin, nodes=2).running():
                await the_life_of_applications(plane, admin, tmp_path, "one-manager")
                await the_life_of_applications(plane, admin, tmp_path, "a-process-each")


async def the_life_of_applications(plane: ControlPlane, admin: Client, folder: Path, namespace: str) -> None:
    engine = InMemoryEngine()
    engine.server = admin
    parts = tuple(operators(engine).values())
    if namespace == "one-manager":
        parts = (Operator.combine("all-operators", *parts),)
    for one in parts:
        await install(admin, one)
    await admin.create(Namespace(metadata=ObjectMeta(name=namespace, labels=RESTRICTED)))
    client = admin.using(namespace=namespace)
    await client.wait_for(ServiceAccount, "default", exists(), timeout=LIMIT)
    async with operating(plane, namespace, folder, *parts):
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
    app.metadata.namespace = None  # that of the client
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
    second.metadata.namespace = None  # that of the client
    await client.create(second)
    await wait(client, runs, "second")
    after = await client.get(DATABASE, before.name)
    assert (after.uid, "ownerReferences" in after.metadata) == (before.uid, False)
