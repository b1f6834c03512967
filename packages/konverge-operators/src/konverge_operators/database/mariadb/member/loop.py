"""The loop of a member: wait, start the server, watch it, begin again when it has ended."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from konverge_operators.database.mariadb.member.api_server import ApiServer, Peer, StoredRecord
from konverge_operators.database.mariadb.member.decisions import (
    QUORUM_LIMIT,
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
from konverge_operators.database.mariadb.member.server import Server, ServerError, View
from konverge_operators.database.mariadb.member.status_server import LiveState, query_member

__all__ = ["Loop"]

_INTERVAL: Final = 1.0
_STEADY: Final = 5.0
"""Seconds between two reads of the record while nothing changes."""
_PATIENCE: Final = 30.0
"""Seconds after which it is reported why a member does not start: others may be about to."""


class Loop:
    """One member. `run` returns after `stop`."""

    def __init__(
        self, name: str, api_server: ApiServer, server: Server, script: str, interval: float = _INTERVAL
    ) -> None:
        self._name, self._api_server, self._server, self._script = name, api_server, server, script
        self._interval = interval
        self.state = LiveState()
        self._stopping = threading.Event()
        self._published: tuple[Report, str | None] | None = None
        self._seen: tuple[View, float] | None = None
        self._lost_at: float | None = None
        self._needed_at: float | None = None
        self._last_error = ""
        self._applied = (-1, 0.0)

    def stop(self) -> None:
        self._stopping.set()

    def is_primary(self) -> bool:
        """Report whether this member is the recorded primary: then no other one has accepted writes until now.

        Raises: ApiServerError.
        """
        record = self._api_server.read_record().record
        return record is not None and record.primary == self._name

    def run(self) -> None:
        """Run until `stop`; then hand over, and stop the server."""
        while not self._stopping.is_set():
            self._guard(self._start)
            while self._server.runs and not self._stopping.is_set():
                self._guard(self._watch)
                self._wait()
        self._guard(self._leave)
        self._server.stop()

    def _guard(self, step: Callable[[], None]) -> None:
        """Run a step; report its failure, after which it is run again.

        Whatever fails here, the end of this program would be the end of a server that may be healthy.
        """
        self.state.renew()
        try:
            step()
            self._last_error = ""
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            if message != self._last_error:
                self._log(message)
            self._last_error = message
            self._wait()

    def _wait(self) -> None:
        self._stopping.wait(self._interval)

    def _log(self, message: str) -> None:
        sys.stderr.write(f"member: {message}\n")
        sys.stderr.flush()

    # Without a server

    def _start(self) -> None:
        """Wait until it is known how this member starts, and start it."""
        self._server.clear()
        self._forget()
        position, since = self._server.read_position(self.state.renew), time.monotonic()
        report = Report("waiting", position)
        self._publish(report, None)
        while not self._stopping.is_set():
            self.state.renew()
            stored, peers = self._api_server.read_record(), self._api_server.list_peers()
            reports = {name: peer.report for name, peer in peers.items()} | {self._name: report}
            live = self._ask(peers)
            decision = next_start(self._name, stored.record, reports, live, diverged=self._server.diverged)
            if not isinstance(decision, Hold):
                self._execute(decision, position, peers, stored)
                return
            is_late = time.monotonic() - since > _PATIENCE
            self._publish(_explained(report, decision, is_late=is_late), None)
            self._wait()

    def _execute(
        self, decision: Bootstrap | Join, position: Position, peers: Mapping[str, Peer], stored: StoredRecord
    ) -> None:
        self._log(f"{decision} from {position}")
        if isinstance(decision, Bootstrap):
            self._server.initialize(self._script, self.state.renew)
            self._publish(Report("starting", position), None)
            self._server.start([], position)
            return
        record = stored.record
        assert record is not None
        self._server.prepare_to_join()
        self._publish(Report("starting", position), None)
        if self._api_server.write_record(with_member(record, self._name), stored.version):
            addresses = [peer.address for name, peer in peers.items() if name != self._name and peer.address]
            donors = [name for name in decision.members if name != record.primary]
            self._server.start(addresses, position, donors)

    def _ask(self, peers: Mapping[str, Peer]) -> dict[str, Position]:
        """Return the members that are in the primary component now."""
        running = [peer for peer in peers.values() if peer.report.component and peer.name != self._name]
        found = {peer.name: query_member(peer.address) for peer in running if peer.address}
        return {name: position for name, position in found.items() if position is not None}

    # With a server

    def _watch(self) -> None:
        """Look at the server, keep the record, the report and the role."""
        try:
            view = self._server.observe()
        except (ServerError, ValueError):
            self.state.component = self.state.serves = False  # it starts, or it hangs
            return
        self.state.component, self.state.position = view.is_primary, view.position
        if not view.is_primary:
            catches_up = view.is_transfer_unfinished and self._advances(view.position.seqno)
            self._watch_while_joining() if catches_up else self._watch_without_quorum(view)
            return
        self._lost_at = self._needed_at = None
        if not self._is_steady(view):
            self._follow(view)
            self._seen = (_without_position(view), time.monotonic())

    def _is_steady(self, view: View) -> bool:
        if self._seen is None or not self.state.serves:
            return False
        before, since = self._seen
        return before == _without_position(view) and time.monotonic() - since < _STEADY

    def _follow(self, view: View) -> None:
        """Bring the record up to date, then take the role that it says."""
        report = Report("running", component=True, synced=view.synced)
        self._publish(report, self._published[1] if self._published is not None and view.synced else None)
        if view.synced:
            self._server.mark_complete()
        stored = self._api_server.read_record()
        wanted = self._next_record(stored, view)
        if wanted is not None:
            if stored.record is not None and stored.record.primary == self._name != wanted.primary:
                self._server.reject_writes()
            if not self._api_server.write_record(wanted, stored.version):
                return
            self._log(f"recorded {wanted}")
        record = wanted or stored.record
        leads = record is not None and record.primary == self._name
        if leads and view.read_only and view.synced:
            self._server.accept_writes()
        elif not leads and not view.read_only:
            self._server.reject_writes()
        role = "primary" if leads else "replica"
        self._publish(report, role if view.synced else None)
        self.state.serves = view.synced

    def _next_record(self, stored: StoredRecord, view: View) -> Record | None:
        if not view.synced:
            return None
        component = Component(view.position.uuid, view.members, view.is_complete)
        reports = {name: peer.report for name, peer in self._api_server.list_peers().items()}
        return next_record(self._name, stored.record, component, reports)

    def _watch_while_joining(self) -> None:
        """Wait: the server catches up with the others. It is still reported as starting, so that it stays recorded."""
        self.state.serves, self._seen = False, None
        self._lost_at = self._needed_at = None

    def _advances(self, seqno: int) -> bool:
        """Report whether the server has applied something lately."""
        if seqno != self._applied[0]:
            self._applied = (seqno, time.monotonic())
        return time.monotonic() - self._applied[1] < _PATIENCE

    def _watch_without_quorum(self, view: View) -> None:
        """Report a lost quorum, and stop when that is what others wait for."""
        self.state.serves, self._seen = False, None
        self._lost_at = self._lost_at if self._lost_at is not None else time.monotonic()
        seconds = time.monotonic() - self._lost_at
        peers = self._api_server.list_peers()
        live = self._ask(peers)  # the report of a frozen member is old
        others = [replace(peer.report, component=name in live) for name, peer in peers.items() if name != self._name]
        hold = Hold(_describe_loss(view, peers), "NoQuorum")
        self._publish(_explained(Report("running"), hold, is_late=seconds > QUORUM_LIMIT), None)
        if not is_stop_needed(others):
            self._needed_at = None
            return
        self._needed_at = self._needed_at if self._needed_at is not None else time.monotonic()
        if time.monotonic() - self._needed_at > QUORUM_LIMIT:
            self._log("no quorum: stops, to report its position")
            self._server.stop()

    def _leave(self) -> None:
        """Hand over before the server stops, if another member can lead."""
        if not self._server.runs or not self.state.serves:
            return
        stored, peers = self._api_server.read_record(), self._api_server.list_peers()
        record = stored.record
        if record is None or record.primary != self._name:
            return
        others = [name for name in record.members if name != self._name and name in self._ask(peers)]
        if others:
            self._server.reject_writes()
            self._api_server.write_record(Record(record.uuid, others[0], record.members), stored.version)

    # Reports

    def _forget(self) -> None:
        self.state.component = self.state.serves = False
        self._seen = self._lost_at = self._needed_at = None

    def _publish(self, report: Report, role: str | None) -> None:
        if self._published != (report, role):
            self._api_server.publish(self._name, report, role)
            self._published = (report, role)


def _without_position(view: View) -> View:
    return View(view.is_primary, view.synced, Position(view.position.uuid), view.members, True, view.read_only)


def _explained(report: Report, hold: Hold, *, is_late: bool) -> Report:
    return replace(report, reason=hold.reason if is_late else "", message=hold.message)


def _describe_loss(view: View, peers: Mapping[str, Peer]) -> str:
    missing = sorted(set(view.members) - {name for name, peer in peers.items() if peer.report.component})
    return f"the quorum is lost, writes are refused: bring {', '.join(missing) or 'the other members'} back"
