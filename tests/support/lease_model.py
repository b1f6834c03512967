"""A simulation of candidates for one lease: an unreliable network, and clocks that do not agree.

`LeaseSimulation` runs in true time. Each candidate has a clock of its own (any offset, a slightly wrong speed) and a
wall clock that may stop or jump. Requests and responses are delayed, lost, or arrive after their sender timed out;
candidates are frozen, killed and restarted. After every event the open write fences are counted: there are never two.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from konverge.manager.lease import Candidate, LeaseRecord, Read, Timing, Wait, Write
from konverge.manager.write_fence import WriteFence
from konverge.objects import MicroTime

__all__ = ["LeaseSimulation", "ModelServer", "VersionConflict"]

_EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class VersionConflict(Exception):
    """The version of a write is not the stored one."""


@dataclass
class ModelServer:
    """One Lease, with the guarantees of an API server and nothing else."""

    spec: dict[str, Any] | None = None
    version: int = 0

    def read(self) -> LeaseRecord | None:
        return None if self.spec is None else LeaseRecord.read(self.spec, str(self.version))

    def write(self, version: str, changes: Mapping[str, Any]) -> LeaseRecord:
        if version != ("" if self.spec is None else str(self.version)):
            raise VersionConflict
        stored = {**(self.spec or {}), **changes}
        if stored != self.spec:  # a write that changes nothing creates no new version
            self.spec, self.version = stored, self.version + 1
        found = self.read()
        assert found is not None
        return found


@dataclass(eq=False)
class Node:
    """A process with a candidate, a write fence and clocks of its own."""

    simulation: LeaseSimulation
    name: str
    identity: str
    offset: float
    speed: float
    wall_stopped_at: float | None
    frozen_until: float = 0.0
    alive: bool = True
    generation: int = 0
    terms: int = 0
    candidate: Candidate = field(init=False)
    fence: WriteFence = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.generation += 1
        self.alive = True
        self.candidate = self.simulation.make(self.identity, self.simulation.timing, random=self.simulation.random)
        self.fence = WriteFence(self.clock)

    def clock(self) -> float:
        return self.offset + self.simulation.now * self.speed

    def true_time_of(self, local: float) -> float:
        return (local - self.offset) / self.speed

    def wall(self) -> MicroTime:
        stopped = self.wall_stopped_at
        shift = self.simulation.random.uniform(-1e6, 1e6) if stopped is None else stopped
        return MicroTime.of(_EPOCH + timedelta(seconds=shift))

    def apply_state(self) -> None:
        """Open or close the fence as the candidate decides; the elector does so after each step."""
        was_open = self.fence() > 0
        if self.candidate.leading:
            self.fence.open(self.candidate.deadline)
        else:
            self.fence.close()
        self.terms += self.fence() > 0 and not was_open


class LeaseSimulation:
    """Runs true time from event to event, determined by one seed."""

    def __init__(
        self, seed: int, *, nodes: int = 3, timing: Timing | None = None, make: Callable[..., Candidate] = Candidate
    ) -> None:
        self.random = random = Random(seed)
        self.make = make
        self.timing = timing or Timing()
        self.now = 0.0
        self.calm = False
        self.server = ModelServer()
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        same_name = random.random() < 0.2
        self.nodes = [
            Node(
                self,
                name=f"node-{i}",
                identity="same" if same_name else f"node-{i}",
                offset=random.uniform(-1e6, 1e6),
                speed=random.uniform(0.97, 1.03),
                wall_stopped_at=float(i) if random.random() < 0.3 else None,
            )
            for i in range(nodes)
        ]
        for node in self.nodes:
            self._later(random.uniform(0, 5), self._step_of(node))

    def run(self, seconds: float) -> None:
        """Advance time, with faults unless `calm` is set."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, act = heapq.heappop(self._events)
            act()
            self.check()
        self.now = end
        self.check()

    def check(self) -> None:
        """Check that at most one fence is open."""
        open_fences = [node.name for node in self.nodes if node.alive and node.fence() > 0]
        assert len(open_fences) <= 1, f"at {self.now}: {open_fences} may all write"

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes if node.alive and node.candidate.leading and node.fence() > 0]

    def _later(self, delay: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + max(0.0, delay), next(self._order), act))

    def _step_of(self, node: Node) -> Callable[[], None]:
        return self._bound(node, lambda: self._step(node))

    def _bound(self, node: Node, act: Callable[[], None]) -> Callable[[], None]:
        """Return a function that acts in a node, unless it was killed meanwhile, and not while it is frozen."""
        generation = node.generation

        def when_running() -> None:
            if not node.alive or node.generation != generation:
                return
            if node.frozen_until > self.now:
                self._later(node.frozen_until - self.now, when_running)
            else:
                act()

        return when_running

    def _step(self, node: Node) -> None:
        if not self.calm and self._inject_fault(node):
            return
        step = node.candidate.next(node.clock(), node.wall())
        node.apply_state()
        if isinstance(step, Wait):
            self._later(max(0.001, node.true_time_of(step.until) - self.now), self._step_of(node))
        else:
            self._send(node, step, lambda: self._step(node))

    def _inject_fault(self, node: Node) -> bool:
        chance = self.random.random()
        if chance < 0.03:
            node.frozen_until = self.now + self.random.choice([1, 5, 14, 20, 60])
        elif chance < 0.045:
            node.alive = False
            self._later(self.random.uniform(0, 20), lambda: self._restart(node))
            return True
        elif chance < 0.06:
            self._release(node)
            return True
        return False

    def _restart(self, node: Node) -> None:
        node.start()
        self._step(node)

    def _release(self, node: Node) -> None:
        step = node.candidate.release(node.wall())
        node.apply_state()
        if step is None or self.random.random() < 0.2:
            self._later(self.random.uniform(0, 10), self._step_of(node))
        else:
            self._send(node, step, lambda: self._release(node))

    def _send(self, node: Node, step: Read | Write, after: Callable[[], None]) -> None:
        started = node.clock()
        done: list[bool] = []

        def once(record: Callable[[], None]) -> Callable[[], None]:
            def act() -> None:
                if not done:
                    done.append(True)
                    record()
                    node.apply_state()
                    self._later(0, self._bound(node, after))

            return self._bound(node, act)

        def fail(conflict: bool = False) -> None:
            node.candidate.record_failure("no response", started=started, at=node.clock(), conflict=conflict)

        def arrive() -> None:
            try:
                found = self.server.read() if isinstance(step, Read) else self.server.write(step.version, step.spec)
            except VersionConflict:
                self._transmit(once(lambda: fail(conflict=True)))
                return
            if isinstance(step, Read):
                self._transmit(once(lambda: node.candidate.record_read(found, at=node.clock())))
            elif found is not None:
                self._transmit(
                    once(lambda: node.candidate.record_write(found, started=started, finished=node.clock())),
                )

        self._transmit(arrive)
        self._later(step.timeout / node.speed, once(fail))

    def _transmit(self, act: Callable[[], None]) -> None:
        """Deliver a message over the network, late or not at all."""
        chance = 1.0 if self.calm else self.random.random()
        if chance < 0.1:
            return
        self._later(self.random.choice([0.5, 3, 6, 12, 25]) if chance < 0.25 else self.random.uniform(0, 0.1), act)
