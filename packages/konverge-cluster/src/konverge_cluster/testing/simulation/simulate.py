"""The decorator: a scenario becomes a test that runs it without faults, and then under many schedules of faults.

@simulate(make_operator, samples=[widget("a")], seeds=50)
async def test_widgets(sim: Simulation) -> None:
    await sim.client.patch(Widget, "a", {"spec": {"replicas": 3}})
    await sim.settle()
    await sim.client.delete(Widget, "a")
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, Unpack, overload

from konverge.manager import Operator
from konverge.testing.virtual_time import run_in_virtual_time
from konverge_cluster.testing.simulation.options import SimulationFailure, SimulationKeywords, SimulationOptions
from konverge_cluster.testing.simulation.runs import Observed, Simulation, run_simulation, seed_random
from konverge_cluster.testing.simulation.schedules import (
    Schedule,
    generate_schedules,
    parse_schedule,
    show_schedule,
    shrink,
)
from konverge_cluster.testing.simulation.snapshots import find_generated, hide_generated

__all__ = ["REPLAY", "simulate"]

REPLAY: Final = "KONVERGE_SIMULATION"
"""The environment variable with a seed and a schedule: only that one is run, with logs."""

E = TypeVar("E")
Scenario: TypeAlias = Callable[[Simulation[E]], Awaitable[None]]


@overload
def simulate(
    operator: Operator | Callable[[], Operator], **keywords: Unpack[SimulationKeywords]
) -> Callable[[Scenario[None]], Callable[[], None]]: ...
@overload
def simulate(
    operator: Callable[[E], Operator], *, external: Callable[[], E], **keywords: Unpack[SimulationKeywords]
) -> Callable[[Scenario[E]], Callable[[], None]]: ...
def simulate(
    operator: Operator | Callable[..., Operator],
    *,
    external: Callable[[], Any] | None = None,
    **keywords: Unpack[SimulationKeywords],
) -> Callable[[Scenario[Any]], Callable[[], None]]:
    """Turn a scenario into a test that checks an operator on virtual time under seeded faults.

    `operator` is an Operator, or a function that returns a new one: each process of the operator starts with a new one,
    so that what is only in memory is lost in a crash. The scenario edits objects as a user does, and calls `settle`
    after each step; what it asserts is checked in every run.

    `external` returns a fake of an external service, a dataclass that is compared by its fields; the function
    `operator` gets it as its argument, and calls of its async methods fail like requests.

    | keyword | |
    |---|---|
    | `samples` | objects that are created first |
    | `seeds` (50) | the number of seeded schedules |
    | `faults` (10) | how many faults a random schedule has at most |
    | `only` | the names of the faults of random schedules; all of `FAULTS` by default |
    | `each_write` | whether the operator is also killed at each write in a run of its own |
    | `replicas` (1) | how many processes run at a time; several compete for a lease |
    | `exclude` | kinds that the operator creates and that outlive their owners |
    | `counts` (True) | whether creates and deletes are compared: not for one that creates too many and deletes them |
    | `quiet` (60) | after how many seconds without a write a step is done: more than any delay of the operator |
    | `nodes` (1) | the number of nodes of the cluster |
    | `cluster` | a subclass of `TestCluster` |

    The test checks, for each seed: the state after each step, the creates and deletes, and the external service are
    those of the run without faults; nothing is written while idle; a restart while idle changes nothing; no key is
    reconciled in a hot loop; only the leader writes; what the operator created is gone when the objects that it
    reconciles are deleted.

    The test raises SimulationFailure with the shortest schedule found that fails, and a line that replays it.
    """
    build = _builder(operator, external is not None)

    def decorate(scenario: Scenario[Any]) -> Callable[[], None]:
        options = SimulationOptions(build=build, scenario=scenario, external=external, **keywords)

        def test() -> None:
            if replay := os.environ.get(REPLAY):
                _replay(options, replay)
            else:
                _run_all(options)

        test.__name__, test.__qualname__ = scenario.__name__, scenario.__qualname__
        test.__module__, test.__doc__ = scenario.__module__, scenario.__doc__
        return test

    return decorate


def _builder(operator: Operator | Callable[..., Operator], takes_external: bool) -> Callable[[Any], Operator]:
    """Return a function that returns the operator of a new process."""
    if isinstance(operator, Operator):
        if takes_external:
            raise TypeError("with external=, pass a function that gets the service and returns the operator")
        try:
            pristine = copy.deepcopy(operator.controllers)
        except Exception as error:
            raise TypeError(
                f"each process needs an operator of its own, and this one cannot be copied ({error}): pass a function"
                " that returns it"
            ) from error
        return lambda _: dataclasses.replace(operator, controllers=copy.deepcopy(pristine), metrics=())
    if takes_external:
        return operator
    return lambda _: operator()


@contextmanager
def _collect_between_runs() -> Generator[None]:
    """Collect garbage only after each run, and ignore what existed before: a run has little of its own."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


@_collect_between_runs()
def _run_all(options: SimulationOptions) -> None:
    expected = _run_without_faults(options)
    schedules = generate_schedules(
        options.seeds, expected.bounds, faults=options.faults, only=options.only, each_write=options.each_write
    )
    for seed, schedule in enumerate(schedules, start=-2):
        try:
            _run(options, schedule, seed, expected)
        except SimulationFailure as failure:
            raise _report(options, schedule, seed, expected, failure) from None


def _run_without_faults(options: SimulationOptions) -> Observed:
    """Run the scenario twice: values of Secrets that differ are generated."""
    expected, again = (_run(options, (), seed, None) for seed in (0, 1))
    steps = zip(expected.snapshots, again.snapshots, strict=False)
    generated = {value for one, other in steps for value in find_generated(one, other)}
    values: dict[tuple[str, str], list[str]] = {}
    shown = [hide_generated(one, generated, values) for one in expected.snapshots]
    return dataclasses.replace(expected, snapshots=shown, generated=generated)


def _run(
    options: SimulationOptions, schedule: Schedule, seed: int, expected: Observed | None, *, logs: bool = False
) -> Observed:
    """Run one schedule. Errors are expected under faults, so only the run without them logs."""
    with seed_random(seed, logs=logs or not schedule):
        observed = run_in_virtual_time(run_simulation(options, schedule, seed, expected), debug=False)
    gc.collect()
    gc.freeze()  # what is left is mostly what later runs share
    return observed


def _replay(options: SimulationOptions, text: str) -> None:
    """Run one schedule: "seed=17 crash-after:7"."""
    first, _, rest = text.partition(" ")
    seed = int(first.removeprefix("seed="))
    _run(options, parse_schedule(rest), seed, _run_without_faults(options), logs=True)


def _report(
    options: SimulationOptions, schedule: Schedule, seed: int, expected: Observed, failure: SimulationFailure
) -> SimulationFailure:
    """Return the failure of the shortest schedule that still fails, with the line that replays it."""
    failures = {schedule: failure}

    def fails(shorter: Schedule) -> bool:
        try:
            _run(options, shorter, seed, expected)
        except SimulationFailure as found:
            failures[shorter] = found
            return True
        return False

    shortest = shrink(schedule, fails)
    file = os.path.relpath(inspect.getfile(options.scenario))
    line = (
        f"{REPLAY}='seed={seed} {show_schedule(shortest)}' pytest {Path(file).as_posix()}::{options.scenario.__name__}"
    )
    return SimulationFailure(f"{failures[shortest]}\nreplay: {line}")
