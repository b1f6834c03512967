"""One run of a scenario under one schedule, and what it observed.

In the run without faults a step is done when nothing has been written for some time. Its snapshot is what every other
run has to reach at the same step. So a difference is found at the step that caused it.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic

from konverge.client import Client, ClientOptions, InProcessTransport
from konverge.manager import Operator
from konverge.objects import kind_of
from konverge_cluster.operator_accounts import account_user, create_account
from konverge_cluster.testing.clusters import TestCluster, virtual_clock
from konverge_cluster.testing.operators import install_operator
from konverge_cluster.testing.simulation.audits import OPERATOR, USER, Audit, Target, Write
from konverge_cluster.testing.simulation.external import wrap_external
from konverge_cluster.testing.simulation.foreign import ForeignClient
from konverge_cluster.testing.simulation.options import SimulationFailure, SimulationOptions
from konverge_cluster.testing.simulation.processes import NAMESPACE, Processes
from konverge_cluster.testing.simulation.schedules import REST_FAULTS, Bounds, Schedule
from konverge_cluster.testing.simulation.snapshots import differences, hide_generated, normalize, take_snapshot
from konverge_cluster.testing.simulation.transports import AuditTransport, Faults, ProcessTransport

if TYPE_CHECKING:
    # Only type checkers read the default.
    from typing_extensions import TypeVar

    E = TypeVar("E", default=None)
else:
    from typing import TypeVar

    E = TypeVar("E")

__all__ = ["Observed", "Simulation", "run_simulation", "seed_random"]

_CONVERGED: Final = 5.0
"""For how long the state has to equal the expected one."""
_STEP_LIMIT: Final = 900.0
"""How many seconds a step may take, also under faults."""
_STEADY: Final = 600.0
"""For how long nothing may be written at the end without faults; with faults it is `quiet`."""
_STALLED: Final = 60.0
"""How many seconds it takes at most until a stalled watch is noticed and opened again."""
_CLEANUP_LIMIT: Final = 300.0


@dataclass
class Observed:
    """What a run has observed."""

    snapshots: list[dict[str, Any]] = field(default_factory=list)
    generated: set[tuple[str, str]] = field(default_factory=set)  # values of Secrets that differ from run to run
    counts: Counter[str] = field(default_factory=Counter)
    external: Any = None
    bounds: Bounds = field(default_factory=lambda: Bounds(0, 0, 0))


@dataclass
class Environment:
    """The parts of one run."""

    cluster: TestCluster
    faults: Faults
    processes: Processes
    external: Any


class Simulation(Generic[E]):
    """What a scenario gets.

    `client` is the user's: it has no faults. `cluster` runs the nodes. `external` is the external service of this run,
    as `simulate(external=...)` returned it.
    """

    def __init__(self, options: SimulationOptions, environment: Environment, expected: Observed | None) -> None:
        transport = AuditTransport(
            InProcessTransport(environment.cluster.server.handle), environment.faults.audit, USER
        )
        self.client = Client(transport, options=ClientOptions(namespace=NAMESPACE))
        self.cluster = environment.cluster
        self.external: E = environment.external
        self._options = options
        self._environment = environment
        self._faults = environment.faults
        self._expected = expected
        self._generated_values: dict[tuple[str, str], list[str]] = {}
        self._observed = Observed()
        self._extra: Counter[str] = Counter()

    async def settle(self) -> None:
        """Wait until the operator is done with the edits so far: call it after each step of the scenario."""
        await self._rest()
        rests = len(self._observed.snapshots)
        faults = self._faults.at(rests, REST_FAULTS)
        if faults:
            await self._disturb(faults)
            self._observed.snapshots.pop()
            await self._rest()
        await self._faults.refresh_lists(InProcessTransport(self.cluster.server.handle))

    def hold_restarts(self) -> AbstractContextManager[None]:
        """Start no process inside a `with` block when one was killed; the next one starts at its end.

        What the scenario does in the block after a crash happens while the operator is down. It may then miss states
        that it sees in the run without faults, so creates and deletes are not compared.
        """
        return self._environment.processes.hold_restarts()

    @property
    def schedule(self) -> Schedule:
        """The faults of this run; empty in the run without faults."""
        return self._faults.schedule

    @property
    def writes(self) -> tuple[Write, ...]:
        """The writes of the operator that have reached the server, without events, leases and access reviews."""
        return tuple(self._faults.audit.writes)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often the operator has created and deleted each object: {"create configmaps default/a": 1}."""
        return dict(self._faults.audit.counts)

    # While idle

    async def _rest(self) -> None:
        """Wait until the step is done, and append its snapshot."""
        if self._expected is None:
            await self._wait_until_quiet()
        else:
            await self._converge(self._expected.snapshots[len(self._observed.snapshots)])
        self._observed.snapshots.append(self._take_snapshot())

    async def _wait_until_quiet(self) -> None:
        loop, audit = asyncio.get_running_loop(), self._faults.audit
        end, seen, since = loop.time() + _STEP_LIMIT, -1, loop.time()
        while loop.time() - since < self._options.quiet:
            await asyncio.sleep(1.0)
            self._raise_failures()
            changed = len(audit.writes)
            if changed != seen:
                seen, since = changed, loop.time()
            if loop.time() > end:
                last = ", ".join(map(str, audit.writes[-3:]))
                raise SimulationFailure(f"the operator still writes after {_STEP_LIMIT:g} s: {last}")

    def _take_snapshot(self) -> dict[str, Any]:
        generated = self._expected.generated if self._expected is not None else set[tuple[str, str]]()
        return hide_generated(take_snapshot(self._faults.audit), generated, self._generated_values)

    async def _converge(self, expected: dict[str, Any]) -> None:
        loop, storage = asyncio.get_running_loop(), self._faults.audit.storage
        end, equal_since, revision = loop.time() + _STEP_LIMIT, None, -1
        while equal_since is None or loop.time() - equal_since < _CONVERGED:
            await asyncio.sleep(1.0)
            self._raise_failures()
            if storage.revision == revision:
                if loop.time() > end and equal_since is None:
                    break
                continue
            revision = storage.revision
            equal = self._take_snapshot() == expected
            equal_since = (equal_since or loop.time()) if equal else None
            if loop.time() > end:
                break
        else:
            return
        found = self._take_snapshot()
        step = len(self._observed.snapshots) + 1
        raise SimulationFailure(
            f"step {step} does not reach its state without faults in {_STEP_LIMIT:g} s: {differences(expected, found)}"
        )

    async def _disturb(self, faults: list[str]) -> None:
        """Restart the operator, or edit what it applies. A restart by itself must change nothing."""
        audit = self._faults.audit
        if "foreign-edit" in faults:
            await self._faults.foreign.edit_applied()
        if "foreign-delete" in faults:
            self._extra.update(f"create {name}" for name in await self._faults.foreign.delete_applied())
        if "restart" in faults:
            writes = len(audit.writes)
            self._environment.processes.kill()
            await asyncio.sleep(30.0)
            if all(one.fault == "restart" for one in self._faults.schedule):
                self._check_unchanged(writes)

    def _check_unchanged(self, writes: int) -> None:
        if changed := [str(one) for one in self._faults.audit.writes[writes:] if one.changed]:
            raise SimulationFailure(
                f"the operator changed objects when it was restarted after step {len(self._observed.snapshots)},"
                f" although nothing else had changed (a missing watch, or state in memory?): {', '.join(changed[:3])}"
            )

    def _raise_failures(self) -> None:
        failures = (*self._faults.failures, *self._environment.processes.missing_declarations())
        if failures:
            raise SimulationFailure("; ".join(dict.fromkeys(failures)))

    # At the end

    async def finish(self) -> Observed:
        """Check what has to hold after the last step, remove the user's objects, and check that nothing is left."""
        await self.settle()
        self._faults.healthy = True
        if self._faults.has_paused_watches:
            await asyncio.sleep(_STALLED)
        audit = self._faults.audit
        writes = len(audit.writes)
        steady = _STEADY if self._expected is None else self._options.quiet
        await asyncio.sleep(steady)
        self._raise_failures()
        if found := self._needless_writes(writes):
            raise SimulationFailure(
                f"{len(found)} writes while idle, within {steady:g} s: {', '.join(map(str, found[:3]))}"
            )
        rests = len(self._observed.snapshots)
        self._observed.bounds = Bounds(self._faults.writes, self._faults.reads, rests, tuple(self._faults.deletes))
        await self._clean_up()
        self._check_leaders()
        self._observed.counts = audit.counts - self._extra
        self._observed.external = normalize(self.external, audit)
        self._compare()
        return self._observed

    def _needless_writes(self, since: int) -> list[Write]:
        """Return the writes from a number on, without those of a process that has just started.

        After a lost lease the next leader may start while nothing else happens. It may apply each object once, to the
        same state.
        """
        writes = self._faults.audit.writes
        known = {one.process for one in writes[:since]}
        found, applied = [], set[Target]()
        for one in writes[since:]:
            if one.changed or one.process in known or one.target in applied:
                found.append(one)
            applied.add(one.target)
        return found

    async def _clean_up(self) -> None:
        """Delete the objects of the user that the operator reconciles; what the operator created must go with them."""
        loop, kinds = asyncio.get_running_loop(), self._faults.kinds
        for target in self._primary_objects():
            namespace = target.namespace or None
            await self.client.delete(
                target.kind, target.name, namespace=namespace, propagation="Background", missing_ok=True
            )
        exclude = {(kind_of(one).group, kind_of(one).plural) for one in self._options.exclude}
        end = loop.time() + _CLEANUP_LIMIT
        while left := self._left(kinds, exclude):
            await asyncio.sleep(1.0)
            self._raise_failures()
            if loop.time() > end:
                raise SimulationFailure(
                    f"left behind after everything was deleted: {', '.join(left[:5])} (a missing owner reference?)"
                )
        await asyncio.sleep(_CONVERGED)

    def _primary_objects(self) -> list[Target]:
        audit = self._faults.audit
        return [
            Target(*collection.name, *entry.key.rpartition("/")[::2])
            for collection in audit.storage
            if collection.name in self._faults.kinds
            for entry in collection.entries()
            if audit.creators.get(entry.uid) == USER
        ]

    def _left(self, kinds: set[tuple[str, str]], exclude: set[tuple[str, str]]) -> list[str]:
        audit = self._faults.audit
        own = audit.created(OPERATOR)
        return [
            audit.name_of(entry.uid)
            for collection in audit.storage
            if collection.name not in exclude
            for entry in collection.entries()
            if entry.uid in own or (collection.name in kinds and entry.uid in audit.creators)
        ]

    def _check_leaders(self) -> None:
        """Check that no process has written again after another one had."""
        last, ended = 0, set[int]()
        for write in self._faults.audit.writes:
            if write.process in ended:
                raise SimulationFailure(f"process {write.process} wrote after process {last} had: {write}")
            if write.process != last:
                ended.add(last)
            last = write.process

    def _compare(self) -> None:
        expected = self._expected
        if expected is None:
            return
        if self._compares_counts() and self._observed.counts != expected.counts:
            found = differences(dict(expected.counts), dict(self._observed.counts))
            raise SimulationFailure(f"creates and deletes are not those without faults: {found}")
        if self._observed.external != expected.external:
            found = differences({"external": expected.external}, {"external": self._observed.external})
            raise SimulationFailure(f"the external service is not in the state without faults: {found}")

    def _compares_counts(self) -> bool:
        """Report whether creates and deletes have to be those without faults.

        A standby whose watch has stalled may act on an old state when it becomes the leader.
        """
        was_down = self._environment.processes.were_down
        is_stale = self._faults.has_paused_watches and self._options.replicas > 1
        return self._options.counts and not was_down and not is_stale


# Running


async def run_simulation(
    options: SimulationOptions, schedule: Schedule, seed: int, expected: Observed | None = None
) -> Observed:
    """Run the scenario under a schedule; compare it with the run without faults, when there is one.

    Raises: SimulationFailure when a check fails.
    """
    cluster = options.cluster(nodes=options.nodes, clock=virtual_clock, seed=seed + 1)
    async with cluster:
        environment = await _create_environment(options, cluster, schedule, seed)
        simulation = Simulation[Any](options, environment, expected)
        running = asyncio.create_task(environment.processes.run())
        acting = asyncio.create_task(_act(options, simulation))
        await asyncio.wait([running, acting], return_when=asyncio.FIRST_COMPLETED)
        if running.done() and running.exception() is None:
            await asyncio.wait([acting])  # a check has failed and stopped the processes: the scenario raises it
        is_done = acting.done()
        for task in (running, acting):
            task.cancel()
        ended, _ = await asyncio.gather(running, acting, return_exceptions=True)
        if not is_done and isinstance(ended, BaseException):
            raise ended
        return await acting


async def _act(options: SimulationOptions, simulation: Simulation[Any]) -> Observed:
    """Create the samples, and run the scenario to its end. What it asserts is a check of the operator too."""
    for sample in options.samples:
        await simulation.client.create(copy.deepcopy(sample))
    if options.samples:
        await simulation.settle()
    try:
        await options.scenario(simulation)
    except SimulationFailure:
        raise
    except AssertionError as error:
        if not simulation.schedule:
            raise
        raise SimulationFailure(f"an assertion of the scenario failed: {error}") from error
    return await simulation.finish()


async def _create_environment(
    options: SimulationOptions, cluster: TestCluster, schedule: Schedule, seed: int
) -> Environment:
    audit = Audit(cluster.server.cluster.storage)
    faults = Faults(schedule, audit, ForeignClient(cluster.client(), audit, seed))
    external = options.external() if options.external is not None else None

    def build(transport: ProcessTransport) -> Operator:
        return options.build(wrap_external(external, transport))

    operator = options.build(external)
    await install_operator(cluster.server, cluster.client(), operator)
    await create_account(cluster.client(), operator)
    handle = partial(cluster.server.handle, user=account_user(operator))
    processes = Processes(handle, faults, build, replicas=options.replicas)
    faults.kinds = {(one.kind.group, one.kind.plural) for one in operator.controllers}
    return Environment(cluster, faults, processes, external)


@contextmanager
def seed_random(seed: int, *, logs: bool) -> Generator[None]:
    """Seed the random numbers of the runtime, and hide its logs, while the block runs."""
    logger, state = logging.getLogger("konverge"), random.getstate()
    level = logger.level
    random.seed(seed)
    if not logs:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        random.setstate(state)
        logger.setLevel(level)
