"""Several replicas of an operator in a simulation, operators that are down, and what a scenario can read and assert."""

from __future__ import annotations

import asyncio

import pytest

from konverge import Context, CustomResource, ObjectMeta, Operator, Spec, controller_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import Runnable, RunnableContext
from konverge_cluster.testing import Simulation, SimulationFailure, simulate


class NoteSpec(Spec):
    text: str = "hello"


class Note(CustomResource[NoteSpec], group="example.com", version="v1"):
    """A text in a ConfigMap."""


@controller_for(Note).owns(ConfigMap)
async def notes(note: Note, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=note.name), data={"text": note.spec.text}))


NOTE = Note.new("a", NoteSpec())
OPERATOR = Operator(name="notes", controllers=(notes,))
EVENING = {"spec": {"text": "good evening"}}


def test_a_standby_takes_over_and_only_the_leader_writes() -> None:
    writers: list[int] = []

    @simulate(OPERATOR, samples=[NOTE], replicas=2, seeds=2)
    async def scenario(sim: Simulation) -> None:
        await sim.client.patch(Note, "a", EVENING)
        await sim.settle()
        writers.append(len({write.process for write in sim.writes}))

    scenario()
    assert writers[0] == 1, "without faults there is one leader"
    assert max(writers) > 1, "after a crash another process writes"


def test_a_standby_that_writes_is_found() -> None:
    async def write(ctx: RunnableContext) -> None:
        for number in range(10):
            patch = {"metadata": {"annotations": {"number": str(number)}}}
            await ctx.client.patch(ConfigMap, "kube-root-ca.crt", patch, namespace="default")
            await asyncio.sleep(1)

    async def scenario(sim: Simulation) -> None:
        await asyncio.sleep(120)

    def build() -> Operator:
        return Operator(name="notes", controllers=(notes,), runnables=(Runnable(write, leader_only=False),))

    with pytest.raises(SimulationFailure, match=r"process \d wrote after process \d had: PATCH configmaps"):
        simulate(build, replicas=2, seeds=0)(scenario)()


def test_while_restarts_are_held_the_operator_is_down() -> None:
    downs: list[bool] = []

    @simulate(OPERATOR, seeds=0, each_write=True)
    async def scenario(sim: Simulation) -> None:
        with sim.hold_restarts():
            await sim.client.create(Note.new("a", NoteSpec()))
            await asyncio.sleep(30)
            writes = len(sim.writes)
            await sim.client.patch(Note, "a", EVENING)
            await asyncio.sleep(30)
            downs.append(len(sim.writes) == writes)
        await sim.settle()
        assert (await sim.client.get(ConfigMap, "a")).data == EVENING["spec"]

    scenario()
    # Two runs without faults, two of other sorts, then a crash at each write; the last one is after the second write.
    assert downs == [False, False, False, False, True, True, False]


def test_an_assertion_of_the_scenario_is_reported_with_its_schedule() -> None:
    async def scenario(sim: Simulation) -> None:
        assert len(sim.writes) < 2, "too many writes"

    with pytest.raises(SimulationFailure, match="too many writes") as failure:
        simulate(OPERATOR, samples=[NOTE], seeds=2)(scenario)()
    assert "replay: KONVERGE_SIMULATION='seed=" in str(failure.value)


def test_a_scenario_reads_the_counts_and_the_schedule() -> None:
    schedules: list[int] = []

    @simulate(OPERATOR, samples=[NOTE], seeds=1)
    async def scenario(sim: Simulation) -> None:
        assert sim.counts == {"create configmaps default/a": 1}
        schedules.append(len(sim.schedule))

    scenario()
    assert schedules[0] == 0
    assert schedules[-1] > 0


def test_a_wrong_number_of_replicas_is_refused() -> None:
    async def scenario(sim: Simulation) -> None: ...

    with pytest.raises(ValueError, match="at least 1, got 0"):
        simulate(OPERATOR, replicas=0)(scenario)


def test_a_fault_that_does_not_exist_is_refused() -> None:
    async def scenario(sim: Simulation) -> None: ...

    with pytest.raises(ValueError, match="only has earthquake, but the faults are crash-before"):
        simulate(OPERATOR, only=("conflict", "earthquake"))(scenario)
