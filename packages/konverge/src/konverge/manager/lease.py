"""Leading by a Lease, as a machine: told what was seen and written, it says what to do next.

This module decides; it does not ask servers, wait, or look at a clock. Times are seconds on one clock that never goes
back and counts suspension; each candidate has its own, and they are never compared. Rules that hold here:

1. Another's lease is over when *we* have seen no change of it for as long as it says that it lasts. Times written in
   the record come from other clocks and are only copied, never judged.
2. Our own time counts from the *start* of the last write that succeeded, so it ends before anybody who saw that write
   can take over. What was written without an answer counts for nothing.
3. Each write carries the version that it was decided on, so of two candidates one gets a conflict.
4. A lease is ours when it names us *and* the moment at which this very candidate claimed it: another process that was
   given the same identity, or an earlier life of this one, is somebody else.
5. Each write changes the record, even when the wall clock stands or goes back: a renewal that nobody can see would be
   none.
6. A lease that vanishes is still its holder's until it would have been over.

The fields mean what they mean to client-go's electors, so the two can compete for one lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, Final, Self, TypeAlias

from konverge.objects import MicroTime

__all__ = ["Candidate", "Look", "Record", "Step", "Timing", "Wait", "Write"]

JITTER: Final = 0.2
_NEVER: Final = float("-inf")
_RELEASED_FOR: Final = 1  # the shortest that the server takes
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a lease lasts and how often it is renewed, in seconds.

    A leader that has not renewed for `renew_deadline` stops leading; its guard is shut `margin` before the lease is
    over, which is what clocks of different speed and requests on their way may use up. `retry` is the time between two
    tries, lengthened by up to a fifth at random.
    """

    lease: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    margin: float = 1.0

    def __post_init__(self) -> None:
        if self.lease < 1 or self.lease != int(self.lease):
            raise ValueError(f"lease is a whole number of seconds, 1 or more, as a Lease has no other: {self.lease!r}")
        if self.margin < 0:
            raise ValueError(f"margin is a number of seconds, 0 or more: {self.margin!r}")
        if self.renew_deadline > self.lease - self.margin:
            raise ValueError(
                "renew_deadline must be at most lease - margin, so that a leader stops before its lease is over:"
                f" {self.renew_deadline:g} > {self.lease:g} - {self.margin:g}"
            )
        if not 0 < self.retry * (1 + JITTER) < self.renew_deadline:
            raise ValueError(
                f"retry must be above 0 and, lengthened by {JITTER:.0%}, below renew_deadline, so that a leader can try"
                f" twice: {self.retry:g} against {self.renew_deadline:g}"
            )

    @property
    def patience(self) -> float:
        """How long one request may take: of two in a row, the second still ends within the renew deadline."""
        return (self.renew_deadline - self.retry) / 2


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease says; `version` is the object's resource version. Times are kept as texts: see rule 1."""

    holder: str = ""
    lasts: float = 0.0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    version: str = field(default="", compare=False)

    @classmethod
    def read(cls, spec: Mapping[str, Any], version: str) -> Self:
        """Read the spec of a Lease; every field may be missing."""
        return cls(
            holder=spec.get("holderIdentity") or "",
            lasts=spec.get("leaseDurationSeconds") or 0,
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
            version=version,
        )


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before that moment."""

    until: float


@dataclass(frozen=True, slots=True)
class Look:
    """Read the lease, and tell `observed` or `failed`."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Write:
    """Write these fields of the spec over that version ("" creates the lease), and tell `wrote` or `failed`."""

    version: str
    spec: Mapping[str, Any]
    timeout: float


Step: TypeAlias = Wait | Look | Write


class Candidate:
    """One candidate for one lease.

    Promises: of all candidates for a lease at most one has `deadline` in its future, whatever their clocks say, as long
    as the clocks' speeds differ by less than the margin in a lease; `leading` ends before `deadline`.

    Ask `next` what to do, do it, tell what came of it, ask again. Only one thing is under way at a time.
    """

    def __init__(self, identity: str, timing: Timing | None = None, *, random: Random | None = None) -> None:
        if not identity:
            raise ValueError("identity is empty: give each candidate a name that no other has")
        self.identity = identity
        self.timing = timing or Timing()
        self.why_not = "not tried yet"
        self._random = random or Random()
        self._due = _NEVER
        self._fresh = False  # what we know of the lease was just read or written: it may be acted on
        self._absent = False  # there is no such object
        self._seen: Record | None = None
        self._seen_at = _NEVER
        self._held_from: float | None = None
        self._claim = ("", "")  # the version that we last claimed on, and the acquire time that we wrote there
        self._perhaps_ours = False  # a write of ours may stand in the lease
        self._conflicts = 0
        self._trouble = ""

    # What we know

    @property
    def leading(self) -> bool:
        """Whether the lease is ours, as far as was told; `next` ends this in time."""
        return self._held_from is not None

    @property
    def deadline(self) -> float:
        """Until when writes may run; minus infinity for somebody who does not lead."""
        if self._held_from is None:
            return _NEVER
        return self._held_from + self.timing.lease - self.timing.margin

    @property
    def seen(self) -> Record | None:
        """The lease as it was last seen."""
        return self._seen

    # What happened

    def observed(self, record: Record | None, *, at: float) -> None:
        """The lease was read, and the answer came at that time. None: there is no such object."""
        self._fresh, self._due = True, at
        self._absent = record is None
        if record is None:
            self._perhaps_ours = False
            return
        self._see(record, at)
        if self.leading and not self._is_ours(record):
            self.step_down(f"the lease is held by {record.holder!r}" if record.holder else "the lease was taken away")

    def wrote(self, record: Record, *, started: float, answered: float) -> None:
        """What `next` asked to write is written, and this is the lease now."""
        self._see(record, answered)
        self._absent, self._conflicts = False, 0
        # After a late answer we would have to stop at once: then it is better not to have started.
        self._fresh = answered < started + self.timing.renew_deadline
        self._due = max(answered, started + self._pause()) if self._fresh else answered
        if self._fresh and self._is_ours(record):
            self._held_from, self.why_not, self._trouble = started, "", ""

    def failed(self, why: str, *, started: float, at: float, conflict: bool = False) -> None:
        """What `next` asked for did not work, or nobody knows whether it did.

        After a conflict the lease is read again at once, though not twice in a row.
        """
        self._fresh = False
        self._conflicts = self._conflicts + 1 if conflict else 0
        self._due = at if self._conflicts == 1 else max(at, started + self._pause())
        self._trouble = why
        if not self.leading:
            self.why_not = why

    def step_down(self, why: str) -> None:
        """Stop leading now, whatever the lease says. The next try finds out whether it is still ours."""
        self._held_from, self.why_not = None, why

    # What to do

    def next(self, now: float, wall: MicroTime) -> Step:
        """Say what to do now. `wall` is the wall clock, for the times that people read in the lease."""
        if now >= self._loses_at:
            trouble = f": {self._trouble}" if self._trouble else ""
            self.step_down(f"the lease was not renewed for {self.timing.renew_deadline:g} s{trouble}")
        if now < self._due:
            return Wait(min(self._due, self._loses_at))
        if not self._fresh:
            return Look(self._timeout(now))
        if self._may_write(now):
            return self._write(now, wall)
        return self._wait_for_the_holder(now)

    def release(self, wall: MicroTime) -> Look | Write | None:
        """Stop leading, and say how to give the lease back; None when there is nothing, or no more, to give back."""
        if self.leading:
            self.step_down("released")
        if not self._perhaps_ours:
            return None
        if not self._fresh or self._seen is None:
            return Look(self.timing.patience)
        moment = wall.to_wire()
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": _RELEASED_FOR,
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": self._seen.transitions,
        }
        return Write(self._seen.version, spec, self.timing.patience)

    def _write(self, now: float, wall: MicroTime) -> Write:
        seen = self._seen
        version = "" if self._absent or seen is None else seen.version
        if seen is not None and self._is_ours(seen):
            acquired, transitions = seen.acquired, seen.transitions
            wall = max(wall, MicroTime.from_wire(seen.renewed) + _TICK)  # rule 5
        else:
            if self._claim[0] != version or not self._claim[1]:
                # One claim for one version: whichever of its repeats arrives, it is recognised as ours.
                self._claim = (version, wall.to_wire())
            acquired, transitions = self._claim[1], 0 if seen is None else seen.transitions + 1
        self._perhaps_ours = True
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.timing.lease),
            "acquireTime": acquired,
            "renewTime": wall.to_wire(),
            "leaseTransitions": transitions,
        }
        return Write(version, spec, self._timeout(now))

    def _wait_for_the_holder(self, now: float) -> Wait:
        holder = self._seen.holder if self._seen is not None else ""
        self.why_not = f"the lease is held by {holder!r}"
        self._fresh = False
        self._due = min(now + self._pause(), self._over_at)
        return Wait(self._due)

    def _see(self, record: Record, at: float) -> None:
        if record != self._seen:
            self._seen_at = at
        self._seen = record
        self._perhaps_ours = self._is_ours(record)

    def _is_ours(self, record: Record) -> bool:
        return record.holder == self.identity and record.acquired == self._claim[1] != ""

    def _may_write(self, now: float) -> bool:
        seen = self._seen
        return seen is None or not seen.holder or self._is_ours(seen) or now >= self._over_at

    @property
    def _over_at(self) -> float:
        """When the lease that we saw is over; one that does not say how long it lasts, lasts as long as ours."""
        assert self._seen is not None
        return self._seen_at + (self._seen.lasts or self.timing.lease)

    @property
    def _loses_at(self) -> float:
        return float("inf") if self._held_from is None else self._held_from + self.timing.renew_deadline

    def _timeout(self, now: float) -> float:
        return min(self.timing.patience, self._loses_at - now)

    def _pause(self) -> float:
        return self.timing.retry * (1 + JITTER * self._random.random())
