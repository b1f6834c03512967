"""Candidates for one lease on a network that loses and delays, with clocks that agree on nothing, at full speed.

`Race` plays true time. Each candidate has a clock of its own (any offset, a slightly wrong speed) and a wall clock that
may stand still or jump. Requests and answers are delayed, lost, or arrive after their sender gave up; candidates are
frozen, killed and started again. After every event the guards are counted: never are two of them open.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from konverge.manager.guard import Guard
from konverge.manager.lease import Candidate, Look, Record, Timing, Wait, Write
from konverge.objects import MicroTime

__all__ = ["ModelServer", "Race", "Refused"]

_EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Refused(Exception):
    """The version that a write carried is not the one that is stored."""


@dataclass
class ModelServer:
    """One Lease: what an API server promises about it, and nothing else."""

    spec: dict[str, Any] | None = None
    version: int = 0

    def read(self) -> Record | None:
        return None if self.spec is None else Record.read(self.spec, str(self.version))

    def write(self, version: str, changes: Mapping[str, Any]) -> Record:
        if version != ("" if self.spec is None else str(self.version)):
            raise Refused
        stored = {**(self.spec or {}), **changes}
        if stored != self.spec:  # a write that changes nothing gives no new version
            self.spec, self.version = stored, self.version + 1
        found = self.read()
        assert found is not None
        return found


@dataclass(eq=False)
class Node:
    """A process with a candidate, a guard and clocks of its own."""

    race: Race
    name: str
    identity: str
    offset: float
    speed: float
    wall_stands_at: float | None
    frozen_until: float = 0.0
    alive: bool = True
    life: int = 0
    terms: int = 0
    candidate: Candidate = field(init=False)
    guard: Guard = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.life += 1
        self.alive = True
        self.candidate = self.race.make(self.identity, self.race.timing, random=self.race.random)
        self.guard = Guard(self.clock)

    def clock(self) -> float:
        return self.offset + self.race.now * self.speed

    def true_time_of(self, local: float) -> float:
        return (local - self.offset) / self.speed

    def wall(self) -> MicroTime:
        stands = self.wall_stands_at
        shift = self.race.random.uniform(-1e6, 1e6) if stands is None else stands
        return MicroTime.of(_EPOCH + timedelta(seconds=shift))

    def settle(self) -> None:
        """Put the guard where the candidate says, as the elector does after each step."""
        was_open = self.guard() > 0
        if self.candidate.leading:
            self.guard.open(self.candidate.deadline)
        else:
            self.guard.shut()
        self.terms += self.guard() > 0 and not was_open


class Race:
    """Plays true time from event to event, decided by one seed."""

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
                wall_stands_at=float(i) if random.random() < 0.3 else None,
            )
            for i in range(nodes)
        ]
        for node in self.nodes:
            self._later(random.uniform(0, 5), self._step_of(node))

    def play(self, seconds: float) -> None:
        """Let time pass, with faults unless it is calm."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, act = heapq.heappop(self._events)
            act()
            self.check()
        self.now = end
        self.check()

    def check(self) -> None:
        """Never two."""
        able = [node.name for node in self.nodes if node.alive and node.guard() > 0]
        assert len(able) <= 1, f"at {self.now}: {able} may all write"

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes if node.alive and node.candidate.leading and node.guard() > 0]

    def _later(self, delay: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + max(0.0, delay), next(self._order), act))

    def _step_of(self, node: Node) -> Callable[[], None]:
        return self._bound(node, lambda: self._step(node))

    def _bound(self, node: Node, act: Callable[[], None]) -> Callable[[], None]:
        """Do something in a node: not when it was killed meanwhile, and not before it thaws."""
        life = node.life

        def when_awake() -> None:
            if not node.alive or node.life != life:
                return
            if node.frozen_until > self.now:
                self._later(node.frozen_until - self.now, when_awake)
            else:
                act()

        return when_awake

    def _step(self, node: Node) -> None:
        if not self.calm and self._mishap(node):
            return
        step = node.candidate.next(node.clock(), node.wall())
        node.settle()
        if isinstance(step, Wait):
            self._later(max(0.001, node.true_time_of(step.until) - self.now), self._step_of(node))
        else:
            self._send(node, step, lambda: self._step(node))

    def _mishap(self, node: Node) -> bool:
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
        node.settle()
        if step is None or self.random.random() < 0.2:
            self._later(self.random.uniform(0, 10), self._step_of(node))
        else:
            self._send(node, step, lambda: self._release(node))

    def _send(self, node: Node, step: Look | Write, after: Callable[[], None]) -> None:
        started = node.clock()
        done: list[bool] = []

        def once(tell: Callable[[], None]) -> Callable[[], None]:
            def act() -> None:
                if not done:
                    done.append(True)
                    tell()
                    node.settle()
                    self._later(0, self._bound(node, after))

            return self._bound(node, act)

        def fail(conflict: bool = False) -> None:
            node.candidate.failed("no answer", started=started, at=node.clock(), conflict=conflict)

        def arrive() -> None:
            try:
                found = self.server.read() if isinstance(step, Look) else self.server.write(step.version, step.spec)
            except Refused:
                self._answer(once(lambda: fail(conflict=True)))
                return
            if isinstance(step, Look):
                self._answer(once(lambda: node.candidate.observed(found, at=node.clock())))
            elif found is not None:
                self._answer(
                    once(lambda: node.candidate.wrote(found, started=started, answered=node.clock())),
                )

        self._answer(arrive)
        self._later(step.timeout / node.speed, once(fail))

    def _answer(self, act: Callable[[], None]) -> None:
        """Carry a message over the network."""
        chance = 1.0 if self.calm else self.random.random()
        if chance < 0.1:
            return
        self._later(self.random.choice([0.5, 3, 6, 12, 25]) if chance < 0.25 else self.random.uniform(0, 0.1), act)
