"""T39 and T40 on virtual time: a stale cache deletes no child of a new owner, and gives none to a dead one.

Each is one fault in one order, so a script and not a seeded simulation; `konverge_cluster.testing.simulate` has stale
lists among its faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from gadgets import Gadget
from konverge import Manager, crd_for
from konverge.client import InProcessTransport
from konverge_cluster.testing import TestCluster, virtual_clock
from stale_scenarios import StaleScenario

Propagation = Literal["Background", "Orphan"]

RECREATE = pytest.mark.parametrize("recreate", [False, True], ids=["", "recreate"])
PROPAGATION = pytest.mark.parametrize("propagation", ["Background", "Orphan"])


@asynccontextmanager
async def scenario(*, recreate: bool) -> AsyncIterator[StaleScenario]:
    async with TestCluster(clock=virtual_clock) as cluster:
        await cluster.install(crd_for(Gadget))
        yield StaleScenario(lambda: InProcessTransport(cluster.server.handle), recreate=recreate)


@RECREATE
@PROPAGATION
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_t39_a_stale_cache_at_the_start_leaves_the_children_of_a_new_owner_alone(
    known: bool, propagation: Propagation, recreate: bool
) -> None:
    async with scenario(recreate=recreate) as it:
        await it.create_owner(2, "one")
        if known:
            async with it.operator():
                await it.until(lambda: it.has_converged(2, "one"))
        await it.edit_owner(1, "edited")  # not reconciled: the stale operator will do it
        await it.take_snapshot()
        children = await it.replace_owner(propagation, size=3, text="two")

        it.stale.start()
        async with it.operator(it.stale):
            await it.check_untouched(children, 20)
            it.stale.stop()
            await it.check_untouched(children, 5)
            await it.edit_owner(3, "three")
            await it.until(lambda: it.has_converged(3, "three"), timeout=30)
        await asyncio.sleep(60)
        assert await it.has_converged(3, "three")


@RECREATE
@PROPAGATION
@pytest.mark.parametrize("seconds", [20, pytest.param(300, marks=pytest.mark.faults)])
async def test_t40_a_cache_that_becomes_stale_leaves_the_children_of_a_new_owner_alone(
    seconds: float, propagation: Propagation, recreate: bool
) -> None:
    async with scenario(recreate=recreate) as it:
        await it.create_owner(2, "one")
        async with it.operator(it.stale, every=5) as (manager, reconciler):
            await it.until(lambda: it.has_converged(2, "one"))
            await it.take_snapshot()
            it.stale.start()
            await asyncio.sleep(5)  # until the open watches have ended
            children = await it.replace_owner(propagation, size=3, text="two")
            reconciler.text = "edited"

            await it.check_untouched(children, seconds)
            assert "Gadget in default: the watch delivers nothing" in readiness(manager)
            reconciler.text = ""
            it.stale.stop()
            await it.until(lambda: it.has_converged(3, "two"), timeout=30)
            await asyncio.sleep(30)
            assert readiness(manager) == "ok"
        await it.check_untouched(children, 60)


def readiness(manager: Manager) -> str:
    assert manager._running is not None
    return manager._running.monitoring.health.ready().text()
