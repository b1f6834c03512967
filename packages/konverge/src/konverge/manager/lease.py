"""Leader election by a Lease as a state machine: it takes what was read and written, and returns the next step.

This module decides; it sends no requests, does not sleep and does not read a clock. Times are seconds on one clock that
never goes back and counts suspension. Each candidate has its own clock; the clocks are never compared. Rules that every
change to this file keeps:

1. Another candidate's lease has expired when *this candidate* has observed no change of it for the lease duration that
   is written in it. The times in the record come from other clocks; they are copied, never compared with a clock.
2. The time of our own lease counts from the *start* of the last write that succeeded. It ends before a candidate that
   observed that write can acquire the lease. A write without a response counts for nothing.
3. Each write carries the resource version that it was decided on, so one of two competing candidates gets a conflict.
4. The lease is ours when it has our identity *and* the acquire time that this very candidate wrote. Another process
   with the same identity, or an earlier run of this one, is a different holder.
5. Each write changes the record, even when the wall clock stops or goes back: other candidates could not observe a
   renewal that changes nothing.
6. A lease that is deleted still belongs to its holder until it would have expired.

The fields have the same meaning as for client-go's elector, so both can compete for one lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct

from konverge.objects import MicroTime

__all__ = ["Candidate", "LeaseRecord", "Read", "Step", "Timing", "Wait", "Write"]

JITTER: Final = 0.2
_NEVER: Final = float("-inf")
_RELEASED_DURATION: Final = 1  # the shortest duration that the server accepts
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a lease lasts and how often it is renewed, in seconds.

    A leader that has not renewed its lease for `renew_deadline` stops leading. Its write fence closes `margin` before
    the lease expires; the margin covers clocks of different speed and requests in flight. `retry_period` is the time
    between two attempts, extended by a random jitter of up to a fifth.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    margin: float = 1.0

    def __post_init__(self) -> None:
        if self.lease_duration < 1 or self.lease_duration != int(self.lease_duration):
            raise ValueError(
                "lease_duration must be a whole number of seconds, 1 or more, because a Lease stores whole seconds:"
                f" {self.lease_duration!r}"
            )
        if self.margin < 0:
            raise ValueError(f"margin must be 0 or more seconds: {self.margin!r}")
        if self.renew_deadline > self.lease_duration - self.margin:
            raise ValueError(
                "renew_deadline must be at most lease_duration - margin, so that a leader stops before its lease"
                f" expires: {self.renew_deadline:g} > {self.lease_duration:g} - {self.margin:g}"
            )
        if not 0 < self.retry_period * (1 + JITTER) < self.renew_deadline:
            raise ValueError(
                f"retry_period must be above 0 and, with {JITTER:.0%} jitter, below renew_deadline, so that a leader"
                f" can try twice: {self.retry_period:g} against {self.renew_deadline:g}"
            )

    @property
    def request_timeout(self) -> float:
        """How long one request may take: of two in a row, the second still ends within the renew deadline."""
        return (self.renew_deadline - self.retry_period) / 2


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The spec of a Lease; `version` is the object's resource version. Times stay strings: see rule 1."""

    holder: str = ""
    lease_duration: float = 0.0
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0
    version: str = field(default="", compare=False)

    @classmethod
    def read(cls, spec: Mapping[str, Any], version: str) -> Self:
        """Read the spec of a Lease; every field may be missing."""
        return cls(
            holder=spec.get("holderIdentity") or "",
            lease_duration=spec.get("leaseDurationSeconds") or 0,
            acquire_time=spec.get("acquireTime") or "",
            renew_time=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
            version=version,
        )


class Wait(Struct, frozen=True):
    """Do nothing before that time."""

    until: float


class Read(Struct, frozen=True):
    """Read the lease, then call `record_read` or `record_failure`."""

    timeout: float


class Write(Struct, frozen=True):
    """Write these fields of the spec over that version ("" creates the lease), then call `record_write` or
    `record_failure`."""

    version: str
    spec: Mapping[str, Any]
    timeout: float


Step: TypeAlias = Wait | Read | Write


class Candidate:
    """One candidate for one lease.

    Promises: of all candidates for a lease at most one has a `deadline` in its future, whatever their clocks show, as
    long as the clocks differ by less than the margin during one lease; `leading` ends before `deadline`.

    Call `next`, take the step that it returns, record the result, and call it again. Only one step runs at a time.
    """

    def __init__(self, identity: str, timing: Timing | None = None, *, random: Random | None = None) -> None:
        if not identity:
            raise ValueError("identity is empty: pass a name that no other candidate has")
        self.identity = identity
        self.timing = timing or Timing()
        self.reason = "not tried yet"
        """Why this candidate does not lead; "" while it leads."""
        self._random = random or Random()
        self._next_attempt = _NEVER
        self._fresh = False  # the lease was just read or written, so a decision may be based on it
        self._absent = False  # the Lease object does not exist
        self._observed: LeaseRecord | None = None
        self._observed_at = _NEVER
        self._held_since: float | None = None
        self._claim = ("", "")  # the version of our last claim, and the acquire time that it wrote
        self._may_hold = False  # the lease may contain a write of ours
        self._conflicts = 0
        self._last_error = ""

    @property
    def leading(self) -> bool:
        """Whether this candidate holds the lease according to the recorded results; `next` ends this in time."""
        return self._held_since is not None

    @property
    def deadline(self) -> float:
        """Until when writes may run; minus infinity for a candidate that does not lead."""
        if self._held_since is None:
            return _NEVER
        return self._held_since + self.timing.lease_duration - self.timing.margin

    @property
    def observed(self) -> LeaseRecord | None:
        """The lease as last observed."""
        return self._observed

    # Results

    def record_read(self, record: LeaseRecord | None, *, at: float) -> None:
        """Record that the lease was read and the response arrived at that time; None: the object does not exist."""
        self._fresh, self._next_attempt = True, at
        self._absent = record is None
        if record is None:
            self._may_hold = False
            return
        self._observe(record, at)
        if self.leading and not self._is_ours(record):
            self.step_down(f"the lease is held by {record.holder!r}" if record.holder else "the lease was taken away")

    def record_write(self, record: LeaseRecord, *, started: float, finished: float) -> None:
        """Record that the write of the last step succeeded; `record` is the lease after it."""
        self._observe(record, finished)
        self._absent, self._conflicts = False, 0
        # After a late response this candidate would have to stop at once, so it does not start to lead.
        self._fresh = finished < started + self.timing.renew_deadline
        self._next_attempt = max(finished, started + self._retry_delay()) if self._fresh else finished
        if self._fresh and self._is_ours(record):
            self._held_since, self.reason, self._last_error = started, "", ""

    def record_failure(self, reason: str, *, started: float, at: float, conflict: bool = False) -> None:
        """Record that the request of the last step failed, or that its result is unknown.

        After a conflict the lease is read again at once, but not twice in a row.
        """
        self._fresh = False
        self._conflicts = self._conflicts + 1 if conflict else 0
        self._next_attempt = at if self._conflicts == 1 else max(at, started + self._retry_delay())
        self._last_error = reason
        if not self.leading:
            self.reason = reason

    def step_down(self, reason: str) -> None:
        """Stop leading now, whatever the lease contains. The next attempt finds out whether it is still ours."""
        self._held_since, self.reason = None, reason

    # Decisions

    def next(self, now: float, timestamp: MicroTime) -> Step:
        """Return the next step. `timestamp` is the wall clock, for the times that people read in the lease."""
        if now >= self._renew_by:
            error = f": {self._last_error}" if self._last_error else ""
            self.step_down(f"the lease was not renewed for {self.timing.renew_deadline:g} s{error}")
        if now < self._next_attempt:
            return Wait(min(self._next_attempt, self._renew_by))
        if not self._fresh:
            return Read(self._timeout(now))
        if self._may_write(now):
            return self._write(now, timestamp)
        return self._wait_for_holder(now)

    def release(self, timestamp: MicroTime) -> Read | Write | None:
        """Stop leading and return the next step of the release; None when there is nothing (more) to release."""
        if self.leading:
            self.step_down("released")
        if not self._may_hold:
            return None
        if not self._fresh or self._observed is None:
            return Read(self.timing.request_timeout)
        moment = timestamp.to_wire()
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": _RELEASED_DURATION,
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": self._observed.transitions,
        }
        return Write(self._observed.version, spec, self.timing.request_timeout)

    def _write(self, now: float, timestamp: MicroTime) -> Write:
        observed = self._observed
        version = "" if self._absent or observed is None else observed.version
        if observed is not None and self._is_ours(observed):
            acquire_time, transitions = observed.acquire_time, observed.transitions
            timestamp = max(timestamp, MicroTime.from_wire(observed.renew_time) + _TICK)  # rule 5
        else:
            if self._claim[0] != version or not self._claim[1]:
                # One claim per version: whichever of its repeats arrives, it is recognised as ours.
                self._claim = (version, timestamp.to_wire())
            acquire_time, transitions = self._claim[1], 0 if observed is None else observed.transitions + 1
        self._may_hold = True
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.timing.lease_duration),
            "acquireTime": acquire_time,
            "renewTime": timestamp.to_wire(),
            "leaseTransitions": transitions,
        }
        return Write(version, spec, self._timeout(now))

    def _wait_for_holder(self, now: float) -> Wait:
        holder = self._observed.holder if self._observed is not None else ""
        self.reason = f"the lease is held by {holder!r}"
        self._fresh = False
        self._next_attempt = min(now + self._retry_delay(), self._expires_at)
        return Wait(self._next_attempt)

    def _observe(self, record: LeaseRecord, at: float) -> None:
        if record != self._observed:
            self._observed_at = at
        self._observed = record
        self._may_hold = self._is_ours(record)

    def _is_ours(self, record: LeaseRecord) -> bool:
        return record.holder == self.identity and record.acquire_time == self._claim[1] != ""

    def _may_write(self, now: float) -> bool:
        observed = self._observed
        return observed is None or not observed.holder or self._is_ours(observed) or now >= self._expires_at

    @property
    def _expires_at(self) -> float:
        """When the observed lease expires; one without a duration lasts as long as ours."""
        assert self._observed is not None
        return self._observed_at + (self._observed.lease_duration or self.timing.lease_duration)

    @property
    def _renew_by(self) -> float:
        return float("inf") if self._held_since is None else self._held_since + self.timing.renew_deadline

    def _timeout(self, now: float) -> float:
        return min(self.timing.request_timeout, self._renew_by - now)

    def _retry_delay(self) -> float:
        return self.timing.retry_period * (1 + JITTER * self._random.random())
