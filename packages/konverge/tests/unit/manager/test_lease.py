"""The state machine of a lease, on plain values: without a server, a clock or a loop."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.manager.lease import Candidate, LeaseRecord, Read, Timing, Wait, Write
from konverge.objects import MicroTime
from lease_model import LeaseSimulation, ModelServer, VersionConflict

WALL = MicroTime.of(datetime(2030, 1, 1, tzinfo=UTC))


class NoJitter(Random):
    """A random source without jitter."""

    def random(self) -> float:
        return 0.0


class SteppedCandidate:
    """A candidate and a server without a network between them, at times that the test chooses."""

    def __init__(self, identity: str, server: ModelServer, timing: Timing | None = None) -> None:
        self.candidate = Candidate(identity, timing, random=NoJitter())
        self.server = server

    def run_until_wait(self, now: float, wall: MicroTime = WALL) -> Wait:
        """Run every step that is due now; return the wait that follows."""
        while True:
            step = self.candidate.next(now, wall)
            if isinstance(step, Wait):
                return step
            self.take(step, now)

    def take(self, step: Read | Write, now: float) -> None:
        try:
            if isinstance(step, Read):
                self.candidate.record_read(self.server.read(), at=now)
            else:
                written = self.server.write(step.version, step.spec)
                self.candidate.record_write(written, started=now, finished=now)
        except VersionConflict:
            self.candidate.record_failure("conflict", started=now, at=now, conflict=True)

    def release(self, now: float, wall: MicroTime = WALL) -> None:
        while (step := self.candidate.release(wall)) is not None:
            self.take(step, now)


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


def later(seconds: float) -> MicroTime:
    return WALL + timedelta(seconds=seconds)


def test_the_first_candidate_creates_the_lease_as_client_go_would(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)

    a.run_until_wait(100)

    assert a.candidate.leading
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_a_leader_renews_every_two_seconds_and_keeps_the_time_of_its_claim(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)

    assert a.run_until_wait(100) == Wait(102)
    assert a.run_until_wait(102, later(2)) == Wait(104)

    assert server.spec is not None
    assert server.spec["acquireTime"] == "2030-01-01T00:00:00.000000Z"
    assert server.spec["renewTime"] == "2030-01-01T00:00:02.000000Z"
    assert a.candidate.deadline == 102 + 15 - 1


def test_another_lease_expires_when_no_change_was_observed_for_its_duration_whatever_its_times_are(
    server: ModelServer,
) -> None:
    long_ago = {"renewTime": "1999-01-01T00:00:00.000000Z", "acquireTime": "1999-01-01T00:00:00.000000Z"}
    server.write("", {"holderIdentity": "go", "leaseDurationSeconds": 30, "leaseTransitions": 4, **long_ago})
    b = SteppedCandidate("b", server)

    now = 1000.0
    while now < 1030:
        now = b.run_until_wait(now).until
        assert not b.candidate.leading
    b.run_until_wait(1030)

    assert now == 1030, "it waits for the expiry and not for the next retry"
    assert server.spec is not None
    assert b.candidate.leading
    assert server.spec["holderIdentity"] == "b"
    assert server.spec["leaseTransitions"] == 5
    assert server.spec["leaseDurationSeconds"] == 15


def test_an_observed_renewal_restarts_the_wait(server: ModelServer) -> None:
    a, b = SteppedCandidate("a", server), SteppedCandidate("b", server)
    a.run_until_wait(0)
    b.run_until_wait(0)

    a.run_until_wait(2, later(-3600))
    for now in (2.5, 15.5, 17.0):
        b.run_until_wait(now)
        assert not b.candidate.leading
    b.run_until_wait(17.5)

    assert b.candidate.leading


def test_an_edit_of_labels_does_not_keep_a_dead_lease_alive(server: ModelServer) -> None:
    a, b = SteppedCandidate("a", server), SteppedCandidate("b", server)
    a.run_until_wait(0)
    for now in range(0, 15, 3):
        server.version += 1
        b.run_until_wait(now)
    server.version += 1

    b.run_until_wait(15)

    assert b.candidate.leading


def test_fields_of_coordinated_election_are_left_alone(server: ModelServer) -> None:
    server.write("", {"strategy": "OldestEmulationVersion", "preferredHolder": "somebody"})

    SteppedCandidate("a", server).run_until_wait(0)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == "a"
    assert server.spec["strategy"] == "OldestEmulationVersion"
    assert server.spec["preferredHolder"] == "somebody"


def test_a_released_lease_is_acquired_at_the_next_read(server: ModelServer) -> None:
    a, b = SteppedCandidate("a", server), SteppedCandidate("b", server)
    a.run_until_wait(0)
    wait = b.run_until_wait(1)

    a.release(2, later(2))
    assert server.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2030-01-01T00:00:02.000000Z",
        "renewTime": "2030-01-01T00:00:02.000000Z",
        "leaseTransitions": 0,
    }
    assert not a.candidate.leading
    b.run_until_wait(wait.until)

    assert wait.until <= 3
    assert b.candidate.leading
    assert server.spec["leaseTransitions"] == 1


def test_a_lease_that_another_holds_by_now_is_not_released(server: ModelServer) -> None:
    a, b = SteppedCandidate("a", server), SteppedCandidate("b", server)
    a.run_until_wait(0)
    b.run_until_wait(0)
    b.run_until_wait(20)

    a.release(21)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == "b"
    assert not a.candidate.leading


def test_a_claim_without_a_response_is_found_and_renewed_before_it_counts(server: ModelServer) -> None:
    a = Candidate("a", random=NoJitter())
    a.next(0, WALL)
    a.record_read(None, at=0)
    claim = a.next(0, WALL)
    assert isinstance(claim, Write)
    server.write(claim.version, claim.spec)
    a.record_failure("no response", started=0, at=4)

    assert isinstance(a.next(4, later(4)), Read)
    a.record_read(server.read(), at=4)
    assert not a.leading

    renewal = a.next(4, later(4))
    assert isinstance(renewal, Write)
    assert renewal.version == "1"
    a.record_write(server.write(renewal.version, renewal.spec), started=4, finished=4)
    assert a.deadline == 4 + 14


def test_a_lost_claim_is_released_at_the_end_too(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.candidate.next(0, WALL)
    a.candidate.record_read(None, at=0)
    claim = a.candidate.next(0, WALL)
    assert isinstance(claim, Write)
    server.write(claim.version, claim.spec)
    a.candidate.record_failure("no response", started=0, at=4)

    a.release(5)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == ""


def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_before_its_fence_closes(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    started = 2.0
    for _ in range(10):
        step = a.candidate.next(started, WALL)
        if isinstance(step, Wait):
            started = step.until
            continue
        assert started + step.timeout <= 10, "no request outlasts the deadline"
        a.candidate.record_failure("connection refused", started=started, at=started + step.timeout)
        started += step.timeout
        if started >= 10:
            break

    assert a.candidate.deadline == 14
    a.candidate.next(10, WALL)
    assert not a.candidate.leading
    assert a.candidate.reason == "the lease was not renewed for 10 s: connection refused"
    assert a.candidate.deadline == float("-inf")


def test_two_requests_that_hang_fit_into_the_renew_deadline(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    tries = 0
    now = 2.0
    while isinstance(step := a.candidate.next(now, WALL), Read | Write) and a.candidate.leading:
        tries += 1
        a.candidate.record_failure("hangs", started=now, at=now + step.timeout)
        now += step.timeout

    assert tries == 2


def test_a_leader_that_finds_another_holder_in_the_lease_stops_at_once(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    server.write("1", {"holderIdentity": "usurper", "renewTime": "x"})

    a.run_until_wait(2)

    assert not a.candidate.leading
    assert a.candidate.reason == "the lease is held by 'usurper'"


def test_a_response_that_arrives_after_the_deadline_makes_no_leader(server: ModelServer) -> None:
    a = Candidate("a", random=NoJitter())
    a.next(0, WALL)
    a.record_read(None, at=0)
    claim = a.next(0, WALL)
    assert isinstance(claim, Write)

    a.record_write(server.write(claim.version, claim.spec), started=0, finished=10.5)

    assert not a.leading
    assert isinstance(a.next(10.5, WALL), Read)


def test_an_earlier_run_with_the_same_identity_is_another_holder(server: ModelServer) -> None:
    SteppedCandidate("a", server).run_until_wait(0)

    restarted = SteppedCandidate("a", server)
    restarted.run_until_wait(1, later(1))
    assert not restarted.candidate.leading
    restarted.run_until_wait(16, later(16))

    assert restarted.candidate.leading


def test_a_renewal_changes_the_lease_even_if_the_wall_clock_goes_back(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0, WALL)

    for now in (2, 4, 6):
        before = server.version
        a.run_until_wait(now, later(-now * 1000))
        assert server.version == before + 1

    assert server.spec is not None
    assert server.spec["renewTime"] == "2030-01-01T00:00:00.000003Z"


def test_a_lease_that_is_deleted_is_its_holder_s_until_it_would_have_expired(server: ModelServer) -> None:
    a, b = SteppedCandidate("a", server), SteppedCandidate("b", server)
    a.run_until_wait(0)
    b.run_until_wait(1)
    server.spec = None

    for now in (3, 8, 15.9):
        b.run_until_wait(now)
        assert not b.candidate.leading
    b.run_until_wait(16)
    assert b.candidate.leading


def test_a_leader_whose_lease_is_deleted_creates_it_again(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    server.spec = None

    a.run_until_wait(2)

    assert server.read() is not None
    assert a.candidate.deadline == 2 + 14


def test_conflicts_in_a_row_do_not_cause_a_request_storm() -> None:
    a = Candidate("a", random=NoJitter())
    held_by_none = LeaseRecord(version="1")
    requests, now = 0, 0.0
    while now < 20:
        step = a.next(now, WALL)
        if isinstance(step, Wait):
            now = step.until
            continue
        requests += 1
        if isinstance(step, Read):
            a.record_read(held_by_none, at=now)
        else:
            a.record_failure("conflict", started=now, at=now, conflict=True)

    assert requests <= 2 * 20 / 2 + 4


def test_a_lease_without_a_duration_lasts_as_long_as_ours(server: ModelServer) -> None:
    server.write("", {"holderIdentity": "odd"})
    b = SteppedCandidate("b", server)

    b.run_until_wait(0)
    b.run_until_wait(14)
    assert not b.candidate.leading
    b.run_until_wait(15)
    assert b.candidate.leading


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        *(
            (
                {"lease_duration": wrong},
                "lease_duration must be a whole number of seconds, 1 or more, because a Lease stores whole seconds:"
                f" {wrong!r}",
            )
            for wrong in (0, 0.5, 15.5)
        ),
        *(
            (
                {"renew_deadline": wrong},
                "renew_deadline must be at most lease_duration - margin, so that a leader stops before its lease"
                f" expires: {wrong:g} > 15 - 1",
            )
            for wrong in (14.1, 14.5, 15)
        ),
        ({"margin": -1}, "margin must be 0 or more seconds: -1"),
        *(
            (
                {"retry_period": wrong},
                "retry_period must be above 0 and, with 20% jitter, below renew_deadline, so that a leader can try"
                f" twice: {wrong:g} against 10",
            )
            for wrong in (0, -1, 8.4, 9)
        ),
    ],
)
def test_durations_that_cannot_work_are_refused_with_the_rule(wrong: dict[str, float], rule: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(rule)}$"):
        Timing(**wrong)


def test_durations_may_be_at_their_limits() -> None:
    Timing(renew_deadline=14)
    Timing(retry_period=8.3)
    Timing(lease_duration=1, renew_deadline=1, retry_period=0.5, margin=0)
    assert Timing().request_timeout == 4.0


def test_a_candidate_needs_a_name() -> None:
    with pytest.raises(ValueError, match=r"^identity is empty: pass a name that no other candidate has$"):
        Candidate("")


def test_a_claim_is_repeated_with_its_time_on_the_same_version_only() -> None:
    a = Candidate("a", random=NoJitter())

    def claim(version: str, now: float) -> str:
        a.record_read(LeaseRecord(version=version), at=now)
        step = a.next(now, later(now))
        assert isinstance(step, Write)
        a.record_failure("no response", started=now, at=now)
        return str(step.spec["acquireTime"])

    first = claim("1", 0)
    assert claim("1", 10) == first
    assert claim("2", 20) == later(20).to_wire()
    assert claim("2", 30) == later(20).to_wire()


def test_a_failure_is_the_reason_of_a_candidate_that_does_not_lead(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    assert a.candidate.reason == "not tried yet"
    a.candidate.record_failure("forbidden", started=0, at=0)
    assert a.candidate.reason == "forbidden"
    a.run_until_wait(10)
    assert a.candidate.reason == ""
    a.candidate.record_failure("forbidden", started=12, at=12)
    assert (a.candidate.leading, a.candidate.reason) == (True, "")
    a.candidate.next(20, WALL)
    assert (a.candidate.leading, a.candidate.reason) == (False, "the lease was not renewed for 10 s: forbidden")


def test_a_failure_is_retried_after_the_retry_period_and_the_first_conflict_at_once() -> None:
    a = Candidate("a", random=NoJitter())
    a.record_failure("no response", started=100, at=101)
    assert a.next(101, WALL) == Wait(102)
    a.record_failure("no response", started=110, at=115)
    assert isinstance(a.next(115, WALL), Read)
    a.record_failure("conflict", started=120, at=120, conflict=True)
    assert isinstance(a.next(120, WALL), Read)
    a.record_failure("conflict", started=120, at=120, conflict=True)
    assert a.next(120, WALL) == Wait(122)
    a.record_failure("no response", started=130, at=130)
    a.record_failure("conflict", started=140, at=140, conflict=True)
    assert isinstance(a.next(140, WALL), Read), "a failure in between begins a new row"


def test_a_lease_is_read_with_every_field_missing_or_present() -> None:
    assert LeaseRecord.read({}, "7") == LeaseRecord()
    assert LeaseRecord.read({}, "7").version == "7"
    spec = {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "1",
        "renewTime": "2",
        "leaseTransitions": 3,
    }
    assert LeaseRecord.read(spec, "7") == LeaseRecord("a", 15, "1", "2", 3)


def test_the_reason_of_a_lease_that_was_taken_away_names_its_holder(server: ModelServer) -> None:
    for holder, reason in (("b", "the lease is held by 'b'"), ("", "the lease was taken away")):
        a = SteppedCandidate("a", ModelServer())
        a.run_until_wait(0)
        a.candidate.record_read(LeaseRecord(holder, version="9"), at=1)
        assert (a.candidate.leading, a.candidate.reason) == (False, reason)
        assert a.candidate.deadline == float("-inf")


def test_a_release_frees_the_lease_for_a_second_with_its_transitions(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    a.release(3, later(3))
    assert (a.candidate.leading, a.candidate.reason) == (False, "released")
    moment = later(3).to_wire()
    assert server.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": moment,
        "renewTime": moment,
        "leaseTransitions": 0,
    }
    assert a.candidate.release(WALL) is None


def test_the_first_request_of_a_leader_without_time_left_is_short(server: ModelServer) -> None:
    a = SteppedCandidate("a", server)
    a.run_until_wait(0)
    step = a.candidate.next(9, later(9))
    assert isinstance(step, Write)
    assert step.timeout == 1.0, "until the renew deadline"
    step = a.candidate.next(2, later(2))
    assert isinstance(step, Write)
    assert step.timeout == 4.0


# L1, on a network and with clocks that are not reliable


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 3))
def test_two_fences_are_never_open_at_the_same_time(seed: int, nodes: int) -> None:
    simulation = LeaseSimulation(seed, nodes=nodes)

    simulation.run(300)

    simulation.calm = True
    simulation.run(120)
    assert len(simulation.leaders()) == 1, "without faults one candidate leads"


class ShortWait(Candidate):
    """Breaks rule 1: waits for less than the lease."""

    @property
    def _expires_at(self) -> float:
        return self._observed_at + 8


class CountsFromResponse(Candidate):
    """Breaks rule 2: counts from the response."""

    def record_write(self, record: LeaseRecord, *, started: float, finished: float) -> None:
        del started
        super().record_write(record, started=finished, finished=finished)


class IgnoresClaim(Candidate):
    """Breaks rule 4: takes every holder with its identity for itself."""

    def _is_ours(self, record: LeaseRecord) -> bool:
        return record.holder == self.identity


@pytest.mark.parametrize("broken", [ShortWait, CountsFromResponse, IgnoresClaim])
def test_the_simulation_finds_a_candidate_that_breaks_a_rule(broken: type[Candidate]) -> None:
    def is_caught(seed: int) -> bool:
        try:
            LeaseSimulation(seed, make=broken).run(600)
        except AssertionError:
            return True
        return False

    assert any(is_caught(seed) for seed in range(300))
