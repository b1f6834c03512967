"""T39 and T40 on a real server with its garbage collector: a stale cache takes no child from a new owner.

Lists and watches of the operator come from an old snapshot, while reads of one object and writes reach the server. All
variants run at the same time, each in a namespace of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import product

import pytest

from gadgets import Gadget
from konverge import Client, crd_for, load_config
from konverge.client.engines import new_transport
from konverge.errors import AlreadyExists, NotFound
from konverge.testing import ControlPlane
from stale_scenarios import Propagation, StaleScenario, stale_at_the_start, stale_while_running

pytestmark = [pytest.mark.control_plane, pytest.mark.faults]

PROPAGATIONS: tuple[Propagation, ...] = ("Background", "Orphan")
SECONDS = pytest.mark.parametrize("seconds", [20, 300])
AFTERWARDS = 2.0
SLACK = 120.0


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A server whose garbage collector runs. Asking for the run's own first says whether the programs are there."""
    assert control_plane is not None
    with ControlPlane(controller_manager=True) as plane:
        yield plane


@asynccontextmanager
async def scenario(plane: ControlPlane, *, recreate: bool) -> AsyncIterator[StaleScenario]:
    created = plane.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "stale-"}})
    config = load_config(kubeconfig=plane.kubeconfig)
    it = StaleScenario(lambda: new_transport(config), created.json()["metadata"]["name"], recreate, SLACK)
    try:
        yield it
    finally:
        await it.close()


async def install_gadgets(plane: ControlPlane) -> None:
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        with suppress(AlreadyExists):
            await client.create(crd_for(Gadget))
        while True:
            with suppress(NotFound):
                await client.list(Gadget, namespace="default")
                return
            await asyncio.sleep(0.1)


@SECONDS
@pytest.mark.real_time(limit=900)
async def test_t39_a_stale_cache_at_the_start_leaves_the_children_of_a_new_owner_alone(
    plane: ControlPlane, seconds: float
) -> None:
    async def run(propagation: Propagation, known: bool, recreate: bool) -> None:
        async with scenario(plane, recreate=recreate) as it:
            await stale_at_the_start(it, propagation, known=known, seconds=seconds, afterwards=AFTERWARDS)

    await install_gadgets(plane)
    async with asyncio.TaskGroup() as runs:
        for propagation, known, recreate in product(PROPAGATIONS, (True, False), (True, False)):
            runs.create_task(run(propagation, known, recreate))


@SECONDS
@pytest.mark.real_time(limit=900)
async def test_t40_a_cache_that_becomes_stale_leaves_the_children_of_a_new_owner_alone(
    plane: ControlPlane, seconds: float
) -> None:
    async def run(propagation: Propagation, recreate: bool) -> None:
        async with scenario(plane, recreate=recreate) as it:
            await stale_while_running(it, propagation, seconds=seconds, afterwards=AFTERWARDS)

    await install_gadgets(plane)
    async with asyncio.TaskGroup() as runs:
        for propagation, recreate in product(PROPAGATIONS, (True, False)):
            runs.create_task(run(propagation, recreate))
