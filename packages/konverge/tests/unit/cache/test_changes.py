from __future__ import annotations

import asyncio

import pytest

from konverge.cache import Cache
from konverge.cache.changes import Changes
from konverge.client import Client, InProcessTransport
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Kind
from konverge.testing import settle
from konverge_cluster.embedded_server import EmbeddedServer

GADGET = Kind("example.com", "v1", "Gadget", "gadgets")


async def test_a_condition_that_holds_is_not_waited_for() -> None:
    await Changes().wait_for(lambda: True)


async def test_a_waiting_task_goes_on_when_its_condition_holds_and_not_before() -> None:
    changes, done = Changes(), list[int]()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(changes.wait_for(lambda: len(done) == 2))
        for number in range(2):
            await settle()
            assert not waiting.done()
            done.append(number)
            changes.notify()
    assert asyncio.get_running_loop().time() == 0


async def test_a_second_notification_before_the_task_runs_is_no_error() -> None:
    changes, done = Changes(), list[int]()
    async with asyncio.TaskGroup() as group:
        group.create_task(changes.wait_for(lambda: bool(done)))
        await settle()
        changes.notify()
        done.append(1)
        changes.notify()


async def test_nothing_is_stored_for_a_cancelled_task() -> None:
    changes = Changes()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await changes.wait_for(lambda: False)
    assert not changes._waiting


async def test_a_cache_notifies_of_its_first_list_its_watch_and_a_failure() -> None:
    client = Client(InProcessTransport(EmbeddedServer().handle))
    async with Cache(client.collection) as cache:
        (informer,) = cache.declare(ConfigMap).informers
        await cache.changes.wait_for(lambda: informer.synced.is_set() and informer.is_watching)
        (missing,) = cache.declare(GADGET).informers
        await cache.changes.wait_for(lambda: "does not serve" in missing.not_synced_reason())
    assert asyncio.get_running_loop().time() < 1


async def test_tasks_wake_in_the_order_in_which_they_began_to_wait() -> None:
    changes, is_open, order = Changes(), list[int](), list[int]()

    async def wait(number: int) -> None:
        await changes.wait_for(lambda: bool(is_open))
        order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(wait(number))
        await settle()
        is_open.append(1)
        changes.notify()
    assert order == list(range(50))
