"""The rules of a MariaDB member: who bootstraps, who joins, who leads; one by one, and all of them under crashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from konverge_operators.database.mariadb.member.decisions import (
    EMPTY,
    Bootstrap,
    Component,
    Hold,
    Join,
    Position,
    Record,
    Report,
    is_stop_needed,
    next_record,
    next_start,
    with_member,
)

A, B, C = "db-0", "db-1", "db-2"
U = "44572ef4-e1c2-11f1-bbba-9af6430525c8"
OTHER = "9c619064-e1c2-11f1-9df0-1fbf1ea1d5d1"
RECORD = Record(U, A, (A, B, C))


def waiting(seqno: int, uuid: str = U) -> Report:
    return Report("waiting", Position(uuid, seqno))


def start(own: str, record: Record | None, reports: dict[str, Report], **live: Position) -> Bootstrap | Join | Hold:
    return next_start(own, record, reports, {name.replace("_", "-"): one for name, one in live.items()}, diverged=False)


def test_the_first_member_initialises_alone_and_no_other_one_does() -> None:
    assert start(A, None, {A: Report("waiting")}) == Bootstrap()
    assert isinstance(start(B, None, {B: Report("waiting")}), Hold)
    assert isinstance(start(A, None, {A: Report("waiting"), B: Report("waiting")}), Hold)


def test_without_its_record_a_cluster_with_data_recovers_from_the_reports() -> None:
    reports = {A: Report("waiting"), B: waiting(7), C: waiting(5)}
    assert start(B, None, reports) == Bootstrap()
    assert isinstance(start(A, None, reports), Hold)
    assert isinstance(start(B, None, {**reports, C: Report("running")}), Hold)
    assert isinstance(start(B, None, {**reports, C: waiting(9, OTHER)}), Hold)


def test_an_initialised_cluster_is_never_initialised_again() -> None:
    for record in (Record(U, A, (A,)), RECORD):
        found = start(A, record, {name: Report("waiting") for name in record.members})
        assert isinstance(found, Hold)
        assert found.reason == "NoData"


def test_after_a_complete_outage_the_most_advanced_member_starts_when_all_positions_are_known() -> None:
    reports = {A: waiting(10), B: waiting(12), C: waiting(12)}
    assert start(B, RECORD, reports) == Bootstrap()
    assert start(A, RECORD, reports) == start(C, RECORD, reports) == Hold(f"{B} has the newest data and starts first")
    for state in (Report(), Report("starting", Position(U, 12)), Report("running", component=True)):
        found = start(B, RECORD, {**reports, C: state})
        assert isinstance(found, Hold)
        assert found.reason == "NoQuorum"
        assert C in found.message


def test_a_member_whose_data_is_gone_for_good_is_not_waited_for() -> None:
    assert start(B, RECORD, {A: Report("waiting"), B: waiting(3), C: Report("waiting")}) == Bootstrap()


def test_a_member_that_had_left_before_is_not_waited_for_and_leads_only_with_more_data() -> None:
    record = Record(U, A, (A, B))
    assert start(A, record, {A: waiting(10), B: waiting(9)}) == Bootstrap()
    assert start(A, record, {A: waiting(10), B: waiting(9), C: waiting(4)}) == Bootstrap()


def test_a_member_joins_a_component_that_answers() -> None:
    reports = {A: Report("running", component=True), B: waiting(5)}
    assert start(B, RECORD, reports, db_0=Position(U, 5)) == Join((A,))
    assert isinstance(start(B, RECORD, reports), Hold)
    assert start(C, RECORD, {**reports, C: Report("waiting")}, db_0=Position(U, 5)) == Join((A,))


@pytest.mark.parametrize("position", [Position(OTHER, 3), Position(U, 6)])
def test_data_of_another_history_or_ahead_of_the_component_is_left_as_it_is(position: Position) -> None:
    reports = {A: Report("running", component=True), B: Report("waiting", position)}
    found = start(B, RECORD, reports, db_0=Position(U, 5))
    assert isinstance(found, Hold)
    assert (found.reason, B in found.message) == ("Diverged", True)


def test_a_member_that_was_found_diverged_stays_so() -> None:
    reports = {A: Report("running", component=True), B: Report("waiting")}
    found = next_start(B, RECORD, reports, {A: Position(U, 9)}, diverged=True)
    assert isinstance(found, Hold)
    assert found.reason == "Diverged"


def component(*members: str, complete: bool = True) -> Component:
    return Component(U, members, complete)


def serving(*names: str) -> dict[str, Report]:
    return {name: Report("running", component=True, synced=True) for name in names}


def test_the_first_member_that_serves_leads_when_the_primary_is_gone_or_starts_again() -> None:
    assert next_record(B, RECORD, component(C, B), serving(A, B, C)) == Record(U, B, (B, C))
    assert next_record(C, RECORD, component(C, B), serving(B, C)) is None
    assert next_record(C, RECORD, component(C, B), serving(C)) == Record(U, C, (B, C))
    assert next_record(B, RECORD, component(A, B, C), serving(B, C)) == Record(U, B, (A, B, C))
    assert next_record(B, RECORD, component(A, B, C), serving(A, B, C)) is None


def test_nobody_leads_before_it_has_applied_what_was_replicated() -> None:
    assert next_record(B, RECORD, component(B, C, complete=False), serving(B, C)) is None


def test_the_primary_records_who_is_in_its_component_and_who_is_about_to_join() -> None:
    assert next_record(A, None, component(A), {}) == Record(U, A, (A,))
    assert next_record(A, RECORD, component(A), serving(A, B, C)) == Record(U, A, (A,))
    assert next_record(A, RECORD, component(A, B, C), serving(A, B, C)) is None
    joining = with_member(Record(U, A, (A,)), B)
    assert joining == Record(U, A, (A, B))
    assert next_record(A, joining, component(A), {B: Report("starting")}) is None
    assert next_record(A, joining, component(A), {B: Report("waiting")}) == Record(U, A, (A,))
    assert next_record(B, joining, component(B), {A: Report("starting")}) == Record(U, B, (A, B))


def test_a_switchover_moves_the_primary_to_a_member_that_serves() -> None:
    wanted = Record(U, A, (A, B, C), switchover=C)
    assert next_record(A, wanted, component(A, B, C), serving(A, B, C)) == Record(U, C, (A, B, C))
    assert next_record(A, wanted, component(A, B, C), serving(A, B)) == RECORD
    assert next_record(B, wanted, component(A, B, C), serving(A, B, C)) is None


def test_a_member_without_a_quorum_stops_only_for_one_that_waits_or_serves() -> None:
    assert not is_stop_needed([Report("running"), Report("starting")])
    for other in (waiting(3), Report("running", component=True)):
        assert is_stop_needed([Report("running"), other])


def test_reports_and_records_are_read_as_they_were_written() -> None:
    report = Report("waiting", Position(U, 12), reason="NoQuorum", message="x")
    assert Report.parse(report.format()) == report
    assert Report.parse("") == Report.parse("[]") == Report.parse('{"state": 1}') == Report()
    assert Record.parse(RECORD.format()) == RECORD
    assert Record.parse({}) is None


# All rules together: members of a model of Galera crash, freeze and return at any moment.


@dataclass
class Node:
    """A member: its data as the writes that it has applied, what it has received, and its report."""

    applied: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    alive: bool = False
    runs: bool = False
    quorum: bool = False
    empty: bool = True
    writable: bool = False
    report: Report = field(default_factory=Report)


class Galera:
    """A model: writes reach all members of the component before they are acknowledged, and are applied later."""

    def __init__(self, seed: int, count: int = 3) -> None:
        self.random = Random(seed)
        self.nodes = {f"db-{number}": Node() for number in range(count)}
        self.view: list[str] = []
        self.base = 0
        self.record: Record | None = None
        self.acknowledged: list[int] = []
        self.number = 0

    # What happens

    def step(self) -> None:
        name = self.random.choice(list(self.nodes))
        actions = [self.boot, self.decide, self.decide, self.tick, self.tick, self.apply, self.write, self.write]
        self.random.choice([*actions, self.crash, self.form_view, self.stop_without_quorum])(name)

    def boot(self, name: str) -> None:
        node = self.nodes[name]
        if not node.alive:
            node.alive, node.runs, node.writable = True, False, False
            node.report = Report("waiting", self.position(name))

    def decide(self, name: str) -> None:
        node = self.nodes[name]
        if not node.alive or node.runs:
            return
        if name in self.view:
            self.form_view(name)  # a member that has restarted is another one to the component
        reports = {one: other.report for one, other in self.nodes.items() if other.alive or other.report != Report()}
        live = {one: self.position(one) for one in self.view if self.nodes[one].quorum and self.nodes[one].runs}
        found = next_start(name, self.record, {**reports, name: node.report}, live, diverged=False)
        if isinstance(found, Hold):  # also "Diverged", until the others have applied what they have received
            return
        node.report, node.runs, node.quorum = Report("starting", node.report.position), True, True
        if isinstance(found, Bootstrap):
            assert not live, "a second component"
            assert self.record is not None or not self.acknowledged
            assert set(self.acknowledged) <= set(node.applied), f"{name} lacks acknowledged writes"
            self.view, self.base, node.empty, node.received = [name], len(node.applied), False, []
        else:
            assert self.record is not None
            self.record = with_member(self.record, name)
            donor = self.nodes[next(iter(live))]
            everything = [*donor.applied, *donor.received]
            assert everything[: len(node.applied)] == node.applied, f"{name} would lose data"
            node.applied, node.received, node.empty = everything, [], False
            self.view = [*self.view, name]
            self.base = len(everything)

    def crash(self, name: str) -> None:
        if self.random.random() < 0.3:
            node = self.nodes[name]
            node.alive = node.runs = node.quorum = node.writable = False
            node.received = []

    def form_view(self, name: str) -> None:
        """Let the members that are left form a component, if they are a majority of the last one."""
        left = [one for one in self.view if self.nodes[one].runs]
        if left == self.view or not self.view:
            return
        has_quorum = 2 * len(left) > len(self.view)
        for one in left:
            self.nodes[one].quorum = has_quorum
        if has_quorum:
            self.view = left
            self.base = max(len(self.nodes[one].applied) + len(self.nodes[one].received) for one in left)

    def apply(self, name: str) -> None:
        node = self.nodes[name]
        if node.runs and node.quorum and node.received:
            node.applied.append(node.received.pop(0))

    def write(self, name: str) -> None:
        """Write through the primary: replicate, apply, acknowledge; a crash may come in between."""
        node = self.nodes[name]
        if not (node.runs and node.quorum and node.writable and all(self.nodes[one].runs for one in self.view)):
            return
        self.number += 1
        for one in self.view:
            self.nodes[one].received.append(self.number)
        if self.random.random() < 0.9:
            node.applied, node.received = [*node.applied, *node.received], []
            self.acknowledged.append(self.number)

    def tick(self, name: str) -> None:
        node = self.nodes[name]
        if not (node.alive and node.runs and node.quorum) or name not in self.view:
            return
        node.report = Report("running", component=True, synced=True)
        reports = {one: other.report for one, other in self.nodes.items()}
        view = Component(U, tuple(self.view), len(node.applied) >= self.base)
        wanted = next_record(name, self.record, view, reports)
        self.record = wanted or self.record
        node.writable = self.record is not None and self.record.primary == name

    def stop_without_quorum(self, name: str) -> None:
        node = self.nodes[name]
        others = [other.report for one, other in self.nodes.items() if one != name]
        if node.alive and node.runs and not node.quorum:
            node.report = Report("running")
            if is_stop_needed(others):
                node.runs, node.writable, node.received = False, False, []
                node.report = Report("waiting", self.position(name))

    def position(self, name: str) -> Position:
        node = self.nodes[name]
        return EMPTY if node.empty else Position(U, len(node.applied))

    def recover(self) -> None:
        """Let everything return, and nothing fail any more."""
        for _ in range(30):
            for name in self.nodes:
                for action in (self.boot, self.form_view, self.stop_without_quorum, self.decide, self.tick, self.apply):
                    action(name)


@pytest.mark.parametrize("seed", range(300))
def test_no_acknowledged_write_is_lost_and_the_cluster_returns_whatever_crashes(seed: int) -> None:
    galera = Galera(seed, count=1 if seed % 5 == 0 else 3)
    galera.boot("db-0")
    galera.decide("db-0")
    for _ in range(400):
        galera.step()
    galera.recover()
    before = len(galera.acknowledged)
    for name in galera.nodes:
        for _ in range(20):
            galera.write(name)
    assert len(galera.acknowledged) > before, galera.record
    for name in galera.nodes:
        for _ in range(50):
            galera.apply(name)
        assert set(galera.acknowledged) <= set(galera.nodes[name].applied)
