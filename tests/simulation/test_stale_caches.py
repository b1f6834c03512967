"""T39 and T40 on virtual time: a stale cache deletes no child of a new owner, and gives none to a dead one.

Each is one fault in one order, so a script and not a seeded simulation; `konverge_cluster.testing.simulate` has stale
lists among its faults. `tests/contract/test_stale_caches_on_the_server.py` runs them on the real server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gadgets import Gadget
from konverge import crd_for
from konverge.client import InProcessTransport
from konverge_cluster.testing import TestCluster, virtual_clock
from stale_scenarios import Propagation, StaleScenario, stale_at_the_start, stale_while_running

RECREATE = pytest.mark.parametrize("recreate", [False, True], ids=["", "recreate"])
PROPAGATION = pytest.mark.parametrize("propagation", ["Background", "Orphan"])
SECONDS = pytest.mark.parametrize("seconds", [20, pytest.param(300, marks=pytest.mark.faults)])


@asynccontextmanager
async def scenario(*, recreate: bool) -> AsyncIterator[StaleScenario]:
    async with TestCluster(clock=virtual_clock) as cluster:
        await cluster.install(crd_for(Gadget))
        yield StaleScenario(lambda: InProcessTransport(cluster.server.handle), recreate=recreate)


@RECREATE
@PROPAGATION
@SECONDS
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_t39_a_stale_cache_at_the_start_leaves_the_children_of_a_new_owner_alone(
    known: bool, seconds: float, propagation: Propagation, recreate: bool
) -> None:
    async with scenario(recreate=recreate) as it:
        await stale_at_the_start(it, propagation, known=known, seconds=seconds, afterwards=60)


@RECREATE
@PROPAGATION
@SECONDS
async def test_t40_a_cache_that_becomes_stale_leaves_the_children_of_a_new_owner_alone(
    seconds: float, propagation: Propagation, recreate: bool
) -> None:
    async with scenario(recreate=recreate) as it:
        await stale_while_running(it, propagation, seconds=seconds, afterwards=60)
