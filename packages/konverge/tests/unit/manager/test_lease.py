"""The lease as a machine: on plain values, without a server, a clock or a loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.manager.lease import Candidate, Look, Record, Timing, Wait, Write
from konverge.objects import MicroTime
from lease_model import ModelServer, Race, Refused

WALL = MicroTime.of(datetime(2030, 1, 1, tzinfo=UTC))


class Still(Random):
    """No jitter."""

    def random(self) -> float:
        return 0.0


class Played:
    """A candidate and a server without a network between them, at a time that the test sets."""

    def __init__(self, identity: str, server: ModelServer, timing: Timing | None = None) -> None:
        self.candidate = Candidate(identity, timing, random=Still())
        self.server = server

    def until_it_waits(self, now: float, wall: MicroTime = WALL) -> Wait:
        """Do all that is to be done now."""
        while True:
            step = self.candidate.next(now, wall)
            if isinstance(step, Wait):
                return step
            self.do(step, now)

    def do(self, step: Look | Write, now: float) -> None:
        try:
            if isinstance(step, Look):
                self.candidate.observed(self.server.read(), at=now)
            else:
                written = self.server.write(step.version, step.spec)
                self.candidate.wrote(written, started=now, answered=now)
        except Refused:
            self.candidate.failed("conflict", started=now, at=now, conflict=True)

    def release(self, now: float, wall: MicroTime = WALL) -> None:
        while (step := self.candidate.release(wall)) is not None:
            self.do(step, now)


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


def later(seconds: float) -> MicroTime:
    return WALL + timedelta(seconds=seconds)


def test_the_first_candidate_creates_the_lease_as_client_go_would(server: ModelServer) -> None:
    a = Played("a", server)

    a.until_it_waits(100)

    assert a.candidate.leading
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_a_leader_renews_every_two_seconds_and_keeps_the_time_of_its_claim(server: ModelServer) -> None:
    a = Played("a", server)

    assert a.until_it_waits(100) == Wait(102)
    assert a.until_it_waits(102, later(2)) == Wait(104)

    assert server.spec is not None
    assert server.spec["acquireTime"] == "2030-01-01T00:00:00.000000Z"
    assert server.spec["renewTime"] == "2030-01-01T00:00:02.000000Z"
    assert a.candidate.deadline == 102 + 15 - 1


def test_another_lease_is_over_when_no_change_was_seen_for_its_time_whatever_it_says(server: ModelServer) -> None:
    long_ago = {"renewTime": "1999-01-01T00:00:00.000000Z", "acquireTime": "1999-01-01T00:00:00.000000Z"}
    server.write("", {"holderIdentity": "go", "leaseDurationSeconds": 30, "leaseTransitions": 4, **long_ago})
    b = Played("b", server)

    now = 1000.0
    while now < 1030:
        now = b.until_it_waits(now).until
        assert not b.candidate.leading
    b.until_it_waits(1030)

    assert now == 1030, "it waits for the end and not for the next round"
    assert server.spec is not None
    assert b.candidate.leading
    assert server.spec["holderIdentity"] == "b"
    assert server.spec["leaseTransitions"] == 5
    assert server.spec["leaseDurationSeconds"] == 15


def test_a_renewal_that_is_seen_starts_the_wait_anew(server: ModelServer) -> None:
    a, b = Played("a", server), Played("b", server)
    a.until_it_waits(0)
    b.until_it_waits(0)

    a.until_it_waits(2, later(-3600))
    for now in (2.5, 15.5, 17.0):
        b.until_it_waits(now)
        assert not b.candidate.leading
    b.until_it_waits(17.5)

    assert b.candidate.leading


def test_an_edit_of_labels_does_not_keep_a_dead_lease_alive(server: ModelServer) -> None:
    a, b = Played("a", server), Played("b", server)
    a.until_it_waits(0)
    for now in range(0, 15, 3):
        server.version += 1
        b.until_it_waits(now)
    server.version += 1

    b.until_it_waits(15)

    assert b.candidate.leading


def test_fields_of_coordinated_election_are_left_alone(server: ModelServer) -> None:
    server.write("", {"strategy": "OldestEmulationVersion", "preferredHolder": "somebody"})

    Played("a", server).until_it_waits(0)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == "a"
    assert server.spec["strategy"] == "OldestEmulationVersion"
    assert server.spec["preferredHolder"] == "somebody"


def test_a_released_lease_is_taken_at_the_next_look(server: ModelServer) -> None:
    a, b = Played("a", server), Played("b", server)
    a.until_it_waits(0)
    wait = b.until_it_waits(1)

    a.release(2, later(2))
    assert server.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2030-01-01T00:00:02.000000Z",
        "renewTime": "2030-01-01T00:00:02.000000Z",
        "leaseTransitions": 0,
    }
    assert not a.candidate.leading
    b.until_it_waits(wait.until)

    assert wait.until <= 3
    assert b.candidate.leading
    assert server.spec["leaseTransitions"] == 1


def test_a_lease_that_is_another_s_by_now_is_not_released(server: ModelServer) -> None:
    a, b = Played("a", server), Played("b", server)
    a.until_it_waits(0)
    b.until_it_waits(0)
    b.until_it_waits(20)

    a.release(21)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == "b"
    assert not a.candidate.leading


def test_a_claim_without_an_answer_is_found_and_renewed_before_it_counts(server: ModelServer) -> None:
    a = Candidate("a", random=Still())
    a.next(0, WALL)
    a.observed(None, at=0)
    claim = a.next(0, WALL)
    assert isinstance(claim, Write)
    server.write(claim.version, claim.spec)
    a.failed("no answer", started=0, at=4)

    assert isinstance(a.next(4, later(4)), Look)
    a.observed(server.read(), at=4)
    assert not a.leading

    renewal = a.next(4, later(4))
    assert isinstance(renewal, Write)
    assert renewal.version == "1"
    a.wrote(server.write(renewal.version, renewal.spec), started=4, answered=4)
    assert a.deadline == 4 + 14


def test_a_lost_claim_is_given_back_at_the_end_too(server: ModelServer) -> None:
    a = Played("a", server)
    a.candidate.next(0, WALL)
    a.candidate.observed(None, at=0)
    claim = a.candidate.next(0, WALL)
    assert isinstance(claim, Write)
    server.write(claim.version, claim.spec)
    a.candidate.failed("no answer", started=0, at=4)

    a.release(5)

    assert server.spec is not None
    assert server.spec["holderIdentity"] == ""


def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_before_its_guard_does(server: ModelServer) -> None:
    a = Played("a", server)
    a.until_it_waits(0)
    started = 2.0
    for _ in range(10):
        step = a.candidate.next(started, WALL)
        if isinstance(step, Wait):
            started = step.until
            continue
        assert started + step.timeout <= 10, "no request outlasts the deadline"
        a.candidate.failed("connection refused", started=started, at=started + step.timeout)
        started += step.timeout
        if started >= 10:
            break

    assert a.candidate.deadline == 14
    a.candidate.next(10, WALL)
    assert not a.candidate.leading
    assert a.candidate.why_not == "the lease was not renewed for 10 s: connection refused"
    assert a.candidate.deadline == float("-inf")


def test_two_requests_that_hang_fit_into_the_renew_deadline(server: ModelServer) -> None:
    a = Played("a", server)
    a.until_it_waits(0)
    tries = 0
    now = 2.0
    while isinstance(step := a.candidate.next(now, WALL), Look | Write) and a.candidate.leading:
        tries += 1
        a.candidate.failed("hangs", started=now, at=now + step.timeout)
        now += step.timeout

    assert tries == 2


def test_a_leader_that_finds_somebody_else_in_the_lease_stops_at_once(server: ModelServer) -> None:
    a = Played("a", server)
    a.until_it_waits(0)
    server.write("1", {"holderIdentity": "usurper", "renewTime": "x"})

    a.until_it_waits(2)

    assert not a.candidate.leading
    assert a.candidate.why_not == "the lease is held by 'usurper'"


def test_an_answer_that_comes_after_the_deadline_makes_no_leader(server: ModelServer) -> None:
    a = Candidate("a", random=Still())
    a.next(0, WALL)
    a.observed(None, at=0)
    claim = a.next(0, WALL)
    assert isinstance(claim, Write)

    a.wrote(server.write(claim.version, claim.spec), started=0, answered=10.5)

    assert not a.leading
    assert isinstance(a.next(10.5, WALL), Look)


def test_an_earlier_life_of_the_same_name_is_somebody_else(server: ModelServer) -> None:
    Played("a", server).until_it_waits(0)

    reborn = Played("a", server)
    reborn.until_it_waits(1, later(1))
    assert not reborn.candidate.leading
    reborn.until_it_waits(16, later(16))

    assert reborn.candidate.leading


def test_a_renewal_changes_the_lease_even_if_the_wall_clock_goes_back(server: ModelServer) -> None:
    a = Played("a", server)
    a.until_it_waits(0, WALL)

    for now in (2, 4, 6):
        before = server.version
        a.until_it_waits(now, later(-now * 1000))
        assert server.version == before + 1

    assert server.spec is not None
    assert server.spec["renewTime"] == "2030-01-01T00:00:00.000003Z"


def test_a_lease_that_vanishes_is_its_holder_s_until_it_would_have_been_over(server: ModelServer) -> None:
    a, b = Played("a", server), Played("b", server)
    a.until_it_waits(0)
    b.until_it_waits(1)
    server.spec = None

    for now in (3, 8, 15.9):
        b.until_it_waits(now)
        assert not b.candidate.leading
    b.until_it_waits(16)
    assert b.candidate.leading


def test_a_leader_whose_lease_vanishes_makes_it_again(server: ModelServer) -> None:
    a = Played("a", server)
    a.until_it_waits(0)
    server.spec = None

    a.until_it_waits(2)

    assert server.read() is not None
    assert a.candidate.deadline == 2 + 14


def test_conflicts_in_a_row_do_not_make_a_storm() -> None:
    a = Candidate("a", random=Still())
    held_by_none = Record(version="1")
    requests, now = 0, 0.0
    while now < 20:
        step = a.next(now, WALL)
        if isinstance(step, Wait):
            now = step.until
            continue
        requests += 1
        if isinstance(step, Look):
            a.observed(held_by_none, at=now)
        else:
            a.failed("conflict", started=now, at=now, conflict=True)

    assert requests <= 2 * 20 / 2 + 4


def test_a_lease_that_does_not_say_how_long_it_lasts_lasts_as_long_as_ours(server: ModelServer) -> None:
    server.write("", {"holderIdentity": "odd"})
    b = Played("b", server)

    b.until_it_waits(0)
    b.until_it_waits(14)
    assert not b.candidate.leading
    b.until_it_waits(15)
    assert b.candidate.leading


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"lease": 0.5}, "whole number of seconds"),
        ({"lease": 15.5}, "whole number of seconds"),
        ({"renew_deadline": 15}, "at most lease - margin"),
        ({"renew_deadline": 14.5}, "at most lease - margin"),
        ({"margin": -1}, "margin is a number of seconds, 0 or more"),
        ({"retry": 0}, "retry must be above 0"),
        ({"retry": 9}, "below renew_deadline"),
    ],
)
def test_durations_that_cannot_work_are_refused_with_the_rule(wrong: dict[str, float], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Timing(**wrong)


def test_a_candidate_needs_a_name() -> None:
    with pytest.raises(ValueError, match="identity is empty"):
        Candidate("")


# L1, against a network and clocks that do what they like


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 3))
def test_two_guards_are_never_open_at_the_same_time(seed: int, nodes: int) -> None:
    race = Race(seed, nodes=nodes)

    race.play(300)

    race.calm = True
    race.play(120)
    assert len(race.leaders()) == 1, "when all is well again, somebody leads"


class Hasty(Candidate):
    """Breaks rule 1: waits for less than the lease."""

    @property
    def _over_at(self) -> float:
        return self._seen_at + 8


class Late(Candidate):
    """Breaks rule 2: counts from the answer."""

    def wrote(self, record: Record, *, started: float, answered: float) -> None:
        del started
        super().wrote(record, started=answered, answered=answered)


class Gullible(Candidate):
    """Breaks rule 4: takes whoever has its name for itself."""

    def _is_ours(self, record: Record) -> bool:
        return record.holder == self.identity


@pytest.mark.parametrize("broken", [Hasty, Late, Gullible])
def test_the_race_finds_a_candidate_that_breaks_a_rule(broken: type[Candidate]) -> None:
    def is_caught(seed: int) -> bool:
        try:
            Race(seed, make=broken).play(600)
        except AssertionError:
            return True
        return False

    assert any(is_caught(seed) for seed in range(300))
