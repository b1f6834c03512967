"""Schedules: faults as data. An entry is a fault and the number of the write, read or rest at which it happens.

    conflict:3 crash-after:7 restart:2

Writes and reads are counted over all processes of a run, and calls of the external service are writes. A rest is the
end of a step, a call of `Simulation.settle`. Removing an entry leaves the others as they are: that is how a schedule is
shrunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

__all__ = [
    "FAULTS",
    "READ_FAULTS",
    "REST_FAULTS",
    "WRITE_FAULTS",
    "Bounds",
    "Entry",
    "Schedule",
    "generate_schedules",
    "parse_schedule",
    "show_schedule",
    "shrink",
]

WRITE_FAULTS: Final = {
    "crash-before": "the process is killed before the write reaches the server",
    "crash-after": "the process is killed after the server has handled the write, before its response",
    "conflict": "the server responds 409",
    "busy": "the server responds 429",
    "error": "the server responds 500",
    "unavailable": "the server responds 503",
    "timeout": "the server responds 504",
    "lost-response": "the server handles the write, and the response is lost",
    "late-response": "the server handles the write, and the response arrives seconds later",
    "cut-watches": "the watches are reset",
    "close-watches": "the watches are closed by the server",
    "stall-watches": "the watches deliver nothing more, and stay open",
    "delay-watches": "from here on the watches of some kinds are late, so that events of different kinds are reordered",
    "lose-lease": "the process cannot renew its lease, and another one takes over",
    "foreign-touch": "another client writes the object just before this write",
    "foreign-replace": "another client replaces the object just before it is deleted",
}
READ_FAULTS: Final = {
    "stale-list": "a list is that of an earlier rest",
    "failed-read": "the server responds 503",
    "expired-watch": "the server responds 410 to a watch, so that the kind is listed again",
}
REST_FAULTS: Final = {
    "restart": "the process is killed and started again",
    "foreign-edit": "another client changes a field that the operator applies",
    "foreign-delete": "another client deletes an object that the operator applies",
}
FAULTS: Final = {**WRITE_FAULTS, **READ_FAULTS, **REST_FAULTS}


@dataclass(frozen=True, order=True, slots=True)
class Entry:
    """One fault, and the number of the write, read or rest at which it happens."""

    fault: str
    at: int

    def __str__(self) -> str:
        return f"{self.fault}:{self.at}"


Schedule: TypeAlias = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the run without faults had: the numbers of writes, reads and rests, and which writes were deletes."""

    writes: int
    reads: int
    rests: int
    deletes: tuple[int, ...] = ()


def show_schedule(schedule: Schedule) -> str:
    """Return a schedule as one line of text."""
    return " ".join(map(str, schedule))


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that `show_schedule` has written.

    Raises: ValueError for an unknown fault or a missing number.
    """
    entries = []
    for word in text.split():
        fault, _, at = word.partition(":")
        if fault not in FAULTS or not at.isdigit():
            raise ValueError(f"{word!r} is not a fault with a number, like crash-after:7 (known: {', '.join(FAULTS)})")
        entries.append(Entry(fault, int(at)))
    return tuple(entries)


def generate_schedules(
    seeds: int, bounds: Bounds, *, faults: int = 10, only: tuple[str, ...] = (), each_write: bool = False
) -> list[Schedule]:
    """Return two systematic schedules, one for each seed, and with `each_write` one for each write.

    The first restarts the operator after each step, the second replaces each object just before its deletion. The even
    seeds together kill the process before and after every write. The odd seeds, and the even ones for which no write
    is left, have random faults of all kinds, or of those in `only`, at most `faults`. The last ones kill the process
    once: before the first write, and after each.
    """
    restarts = tuple(Entry("restart", at) for at in range(1, bounds.rests + 1))
    replaced = {at + shift for at in bounds.deletes for shift in range(len(bounds.deletes))}  # a retry shifts the next
    crashes = [Entry(fault, at) for at in range(1, bounds.writes + 1) for fault in ("crash-before", "crash-after")]
    Random(0).shuffle(crashes)  # so that the crashes of one schedule are far apart
    parts = (seeds + 1) // 2
    seeded = [
        (seed % 2 == 0 and tuple(sorted(crashes[seed // 2 :: parts]))) or _random(Random(seed), bounds, faults, only)
        for seed in range(seeds)
    ]
    single = [Entry("crash-before", 1), *(Entry("crash-after", at) for at in range(1, bounds.writes + 1))]
    return [
        restarts,
        tuple(Entry("foreign-replace", at) for at in sorted(replaced)),
        *seeded,
        *((one,) for one in single if each_write),
    ]


def _random(random: Random, bounds: Bounds, faults: int, only: tuple[str, ...]) -> Schedule:
    """Return random faults: half of them at writes, three tenths at reads."""
    kinds = ((WRITE_FAULTS, bounds.writes, 5), (READ_FAULTS, bounds.reads, 3), (REST_FAULTS, bounds.rests, 2))
    found = {
        Entry(random.choice(chosen), random.randint(1, limit))
        for names, limit, tenths in kinds
        if limit and (chosen := [name for name in names if name in (only or names)])
        for _ in range(random.randint(1, max(1, faults * tenths // 10)))
    }
    return tuple(sorted(found))


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], *, runs: int = 40) -> Schedule:
    """Return the shortest schedule found that still fails, with at most `runs` runs.

    Every single entry is tried first, since one fault is often enough; then entries are removed one at a time.
    """
    for entry in schedule if len(schedule) > 1 else ():
        runs -= 1
        if runs >= 0 and fails((entry,)):
            return (entry,)
    position = 0
    while position < len(schedule) and runs > 0:
        rest = schedule[:position] + schedule[position + 1 :]
        runs -= 1
        if rest and fails(rest):
            schedule = rest
        else:
            position += 1
    return schedule
