"""The Database operator on a real control plane: real controllers, simulated nodes, generated permissions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from databases import NAME, check_rules, database, storage_class
from konverge import Client, ObjectMeta, Unstructured
from konverge.cli.manifests import Release, files_of
from konverge.client import load_config
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Namespace, PersistentVolumeClaim, Pod, Secret
from konverge.testing import ControlPlane
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator
from volume_clusters import provisioner

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=600), pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
HOME, NAMESPACE = "database-system", "production"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@asynccontextmanager
async def cluster(plane: ControlPlane, engine: InMemoryEngine) -> AsyncGenerator[Client]:
    """Run simulated nodes and a provisioner on a control plane, with the generated permissions installed."""
    release = Release(
        operator=new_operator([engine]), target="konverge_operators.database", namespace=HOME, image="d:1"
    )
    files = files_of(release)
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin:
        for name in ("namespace", "rbac", "operator", "crds"):
            for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
                await admin.apply(Unstructured(one), force=True)
        await admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE, labels=RESTRICTED)))
        await admin.create(storage_class())
        engine.server = admin
        async with provisioner(admin), SimulatedNodes(admin, nodes=2).running():
            yield admin


@asynccontextmanager
async def operating(plane: ControlPlane, engine: InMemoryEngine) -> AsyncGenerator[None]:
    """Run the operator as its service account."""
    operator = new_operator([engine])
    account = f"system:serviceaccount:{HOME}:{operator.name}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    manager = operator.manager(load_config(kubeconfig=plane.kubeconfig_for(account, groups=groups)))
    async with manager.running():
        yield


async def until(claim: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until a check returns True; an API error counts as False."""
    try:
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    if await claim():
                        return
                except KonvergeError:
                    pass
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not within {LIMIT} s: {what}") from None


async def until_ready(client: Client, **expected: Any) -> None:
    """Wait until the database is ready for its last generation, and fields of its status have these values."""

    async def is_ready() -> bool:
        found = await client.get(Database, NAME, namespace=NAMESPACE)
        status = found.status
        matches = all(getattr(status, name) == value for name, value in expected.items())
        return status.phase is Phase.READY and status.observed_generation == found.metadata.generation and matches

    await until(is_ready, f"Ready with {expected}")


async def edit(client: Client, **spec: Any) -> None:
    await client.patch(Database, NAME, {"spec": spec}, namespace=NAMESPACE)


def sample(**spec: Any) -> Database:
    found = database(storageClassName="fast", **spec)
    found.metadata.namespace = NAMESPACE
    return found


async def test_the_life_of_a_database() -> None:
    engine = InMemoryEngine()
    with ControlPlane(controller_manager=True) as plane:
        async with cluster(plane, engine) as client, operating(plane, engine):
            await rules_hold_without_a_webhook(client)
            await client.create(sample(replicas=2, version="18.4"))
            await until_ready(client, ready_replicas=2, primary=f"{NAME}-0")
            await edit(client, version="18.6", storageSize="2Gi")
            await until_ready(client, version="18.6", storage="2Gi", primary=f"{NAME}-1")
            await edit(client, replicas=1)
            await until_ready(client, ready_replicas=1, replicas=1, primary=f"{NAME}-0")
            await deletion_keeps_the_data(client)
    assert not engine.violations
    assert list(engine.initializations.values()) == [1]


async def rules_hold_without_a_webhook(client: Client) -> None:
    await check_rules(client, NAMESPACE)
    await client.delete(Database, NAME, namespace=NAMESPACE)

    async def is_gone() -> bool:
        return not len(await client.list(Database, namespace=NAMESPACE))

    await until(is_gone, "the first database is gone")


async def deletion_keeps_the_data(client: Client) -> None:
    await client.delete(Database, NAME, namespace=NAMESPACE)

    async def is_gone() -> bool:
        kinds = (Database, StatefulSet, Pod)
        return not [kind for kind in kinds if len(await client.list(kind, namespace=NAMESPACE))]

    await until(is_gone, "the database is gone")
    assert len(await client.list(PersistentVolumeClaim, namespace=NAMESPACE)) == 2
    secrets = {one.name for one in await client.list(Secret, namespace=NAMESPACE)}
    assert secrets >= {f"{NAME}-superuser", f"{NAME}-replication", f"{NAME}-app"}
