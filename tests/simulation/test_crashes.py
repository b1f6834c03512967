"""T26 on virtual time: an operator that is killed at any of its writes still reaches the same final state.

The simulation kit kills it before the first write and after each: the state before a write is that after the previous
one. Calls of the ledger are writes too. The final objects, the creates and deletes, and the ledger have to be those
without a crash.
"""

from __future__ import annotations

import asyncio

import pytest

from konverge_cluster.testing import Simulation, simulate
from simulation_scenarios import OpenLedger, act, act_briefly, widget_operator
from widget_operator import Widget
from widget_rigs import widget


@simulate(widget_operator, external=OpenLedger, seeds=0, each_write=True)
async def test_t26_killed_at_any_write_it_ends_in_the_same_state(sim: Simulation[OpenLedger]) -> None:
    await act_briefly(sim)
    assert sim.counts == {
        f"{verb} configmaps default/{name}": 1
        for verb, name in [("create", "a-0"), ("create", "a-1"), ("delete", "a-1")]
    }


@pytest.mark.faults
@simulate(widget_operator, external=OpenLedger, seeds=20, each_write=True)
async def test_t26_in_all_steps_of_the_user(sim: Simulation[OpenLedger]) -> None:
    await act(sim)


@simulate(widget_operator, external=OpenLedger, seeds=0, each_write=True)
async def test_the_ledger_is_closed_also_if_the_object_is_deleted_while_the_process_is_down(
    sim: Simulation[OpenLedger],
) -> None:
    with sim.hold_restarts():
        await sim.client.create(widget("a", replicas=2))
        await asyncio.sleep(60)
        await sim.client.delete(Widget, "a")
    await sim.settle()
    assert sim.external.open == set()
