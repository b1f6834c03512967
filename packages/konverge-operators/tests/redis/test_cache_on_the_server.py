"""The Cache operator on a real control plane: real controllers, simulated nodes, generated permissions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from konverge import Client, ObjectMeta
from konverge.client import field_equals, has_condition, is_deleted
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret, Service
from konverge.objects import AnyObject, find_condition
from konverge.testing import ControlPlane
from konverge_operators.redis.cache.api import Cache, CachePhase
from konverge_operators.redis.operator import new_operator
from redis_servers import cache_sample, operating_on

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=600), pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
NAME, NAMESPACE = "sessions", "caches"


async def test_the_life_of_the_sample() -> None:
    with ControlPlane(controller_manager=True) as plane:
        async with operating_on(plane, new_operator(), NAMESPACE) as client:
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
