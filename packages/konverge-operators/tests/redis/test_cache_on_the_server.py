"""The Cache operator on a real control plane: real controllers, simulated nodes, generated permissions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import yaml

from konverge import Client, ObjectMeta, Unstructured, load_config
from konverge.cli.manifests import Release, files_of
from konverge.client import field_equals, has_condition, is_deleted
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Namespace, Secret, Service
from konverge.objects import AnyObject, find_condition
from konverge.testing import ControlPlane
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.redis.cache.api import Cache, CachePhase
from konverge_operators.redis.operator import new_operator
from redis_servers import cache_sample

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time, pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
NAME, HOME, NAMESPACE = "sessions", "redis-system", "caches"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@asynccontextmanager
async def operating(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Run the operator as its service account, with the generated permissions; return an administrator's client."""
    operator = new_operator()
    files = files_of(Release(operator=operator, target="konverge_operators.redis", namespace=HOME, image="r:1"))
    account = f"system:serviceaccount:{HOME}:{operator.name}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig, namespace=NAMESPACE)) as admin:
        for name in ("namespace", "rbac", "operator", "crds"):
            for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
                await admin.apply(Unstructured(one), force=True)
        await admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE, labels=RESTRICTED)))
        manager = operator.manager(load_config(kubeconfig=plane.kubeconfig_for(account, groups=groups)))
        async with SimulatedNodes(admin, nodes=1).running(), manager.running():
            yield admin


async def test_the_life_of_the_sample() -> None:
    with ControlPlane(controller_manager=True) as plane:
        async with operating(plane) as client:
            await client.create(cache_sample())
            await client.wait_for(Cache, NAME, has_condition("Ready"), timeout=LIMIT)
            password = (await client.get(Secret, NAME)).data["password"]
            await children_are_repaired(client)
            await a_lost_password_is_not_replaced(client, password)
            await client.delete(Cache, NAME)
            await client.wait_for(Cache, NAME, is_deleted(), timeout=LIMIT)
            await client.wait_for(Deployment, NAME, is_deleted(), timeout=LIMIT)


async def children_are_repaired(client: Client) -> None:
    service = await client.get(Service, NAME)
    await client.delete(Service, NAME)
    await client.wait_for(Service, NAME, lambda found: found is not None and found.uid != service.uid, timeout=LIMIT)
    await client.patch(Deployment, NAME, {"spec": {"replicas": 3}})
    await client.wait_for(Deployment, NAME, field_equals(".spec.replicas", 1), timeout=LIMIT)
    await client.wait_for(Cache, NAME, has_condition("Ready"), timeout=LIMIT)


def is_not_ready_for(reason: str) -> Callable[[AnyObject | None], bool]:
    def holds(cache: AnyObject | None) -> bool:
        condition = find_condition(cache.status.conditions, "Ready") if isinstance(cache, Cache) else None
        return condition is not None and (condition.status, condition.reason) == ("False", reason)

    return holds


async def a_lost_password_is_not_replaced(client: Client, password: bytes) -> None:
    await client.delete(Secret, NAME)
    await client.wait_for(Cache, NAME, is_not_ready_for("SecretMissing"), timeout=LIMIT)
    assert (await client.get(Cache, NAME)).status.phase is CachePhase.DEGRADED
    await client.create(Secret(metadata=ObjectMeta(name=NAME), data={"password": password}))
    await client.wait_for(Cache, NAME, has_condition("Ready"), timeout=LIMIT)
