"""The program of a MariaDB member: what it does when answers, files and programs are not as they should be."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from pathlib import Path

import pytest

from konverge.certificates import Authority
from konverge_operators.database.mariadb.member.api_server import ApiServer, ApiServerError, Peer, StoredRecord
from konverge_operators.database.mariadb.member.decisions import EMPTY, Position, Record, Report
from konverge_operators.database.mariadb.member.loop import Loop
from konverge_operators.database.mariadb.member.positions import NO_UUID, read_state
from konverge_operators.database.mariadb.member.server import Address, Server, ServerError, View
from konverge_operators.database.mariadb.member.status_server import PORT, query_member

U = "44572ef4-e1c2-11f1-bbba-9af6430525c8"
OK = "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n"
HOST = f"127.{os.getpid() >> 16}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""An address of this process alone, and of no process node: the port of a member is always the same."""
DAMAGED = ["", "BAD\r\n\r\n", OK.format(100) + "{", OK.format(2) + "{}", OK.format(2) + "[]", OK.format(1) + "{"]


@contextmanager
def answering(host: str, port: int, answer: str) -> Generator[int]:
    """Answer every connection with the same bytes; return the port."""
    with socket.create_server((host, port)) as server:
        threading.Thread(target=_answer, args=(server, answer.encode()), daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _answer(server: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(answer)


@pytest.mark.parametrize("answer", DAMAGED)
def test_a_member_with_a_damaged_answer_is_not_in_the_component(answer: str) -> None:
    with answering(HOST, PORT, answer):
        assert query_member(HOST) is None


def test_a_member_in_the_component_answers_with_its_position() -> None:
    text = json.dumps({"component": True, "uuid": U, "seqno": 7})
    with answering(HOST, PORT, OK.format(len(text)) + text):
        assert query_member(HOST) == Position(U, 7)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("authority") / "ca.crt"
    path.write_bytes(Authority("test").identity.certificate_pem)
    return path


REFUSED = "HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n{"


@pytest.mark.parametrize(("answer", "code"), [*((one, 0) for one in DAMAGED[:3]), (REFUSED, 403)])
def test_a_damaged_answer_of_the_api_server_is_its_failure(
    answer: str, code: int, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering("127.0.0.1", 0, answer) as port:
        cluster = {"server": f"http://127.0.0.1:{port}", "certificate-authority": str(authority)}
        config = {
            "clusters": [{"cluster": cluster}],
            "users": [{"user": {}}],
            "contexts": [{"context": {"namespace": "test"}}],
        }
        (tmp_path / "config").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        with pytest.raises(ApiServerError) as caught:
            ApiServer("db", {}).list_peers()
    assert caught.value.code == code


# The loop


class FailingApiServer(ApiServer):
    """Fails as it is told; then ends the loop."""

    def __init__(self, failures: Iterator[Exception], end: Callable[[], None]) -> None:
        self._failures, self._end = failures, end

    def publish(self, member: str, report: Report, role: str | None) -> None:
        """Accept a report."""

    def list_peers(self) -> dict[str, Peer]:
        return {"db-1": Peer("db-1", "", Report("running", component=True, synced=True))}

    def read_record(self) -> StoredRecord:
        failure = next(self._failures, None)
        if failure is not None:
            raise failure
        self._end()
        return StoredRecord(Record(U, "db-1", ("db-0", "db-1")), "1")


class HealthyServer(Server):
    """A server that runs from the beginning."""

    def __init__(self) -> None:
        self.stops = 0

    @property
    def runs(self) -> bool:
        return not self.stops

    def clear(self) -> None:
        """Leave it running."""

    def read_position(self, renew: Callable[[], None]) -> Position:
        raise ServerError("it runs")

    def observe(self) -> View:
        return View(True, True, Position(U, 7), ("db-0", "db-1"), True, True)

    def mark_complete(self) -> None:
        """Record nothing."""

    def stop(self, timeout: float = 100.0) -> None:
        self.stops += 1


def test_no_failure_of_a_step_ends_a_healthy_server(capfd: pytest.CaptureFixture[str]) -> None:
    failures = [IncompleteRead(b"{", 9), KeyError("items"), OSError(28, "No space left on device"), ApiServerError("x")]
    server = HealthyServer()
    loop = Loop("db-0", FailingApiServer(iter(failures), lambda: loop.stop()), server, "", interval=0.0)
    loop.run()
    logged = [line.split(":")[1].strip() for line in capfd.readouterr().err.splitlines()]
    assert logged == ["ServerError", "IncompleteRead", "KeyError", "OSError", "ApiServerError"]
    assert server.stops == 1
    assert loop.state.serves


class JoiningServer(HealthyServer):
    """A server that fetches what it lacks, and is asked three times how far it is."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self._questions, self._end = iter(range(3)), end

    def observe(self) -> View:
        if next(self._questions, None) is None:
            self._end()
        return View(False, False, Position(U, 7), ("db-0", "db-1"), False, True, is_transfer_unfinished=True)


def test_a_server_that_catches_up_for_long_is_not_stopped_for_others() -> None:
    """Others serve, so one without a quorum would stop. Nobody is asked: it stays reported as starting."""

    class UnusedApiServer(FailingApiServer):
        def list_peers(self) -> dict[str, Peer]:
            raise AssertionError("asked for others")

    server = JoiningServer(lambda: loop.stop())
    api_server = UnusedApiServer(iter([]), lambda: None)
    loop = Loop("db-0", api_server, server, "", interval=0.0)
    loop.run()
    assert server.stops == 1  # by the end of the test
    assert not loop.state.serves


# The server


def program(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server whose programs are in `bin` below the directory of the test."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Server(Address("db-0", "db", "127.0.0.1", tmp_path, "my.cnf", "provider"), {})


def renew() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("status", "state", "expected"),
    [
        ("Primary", "1", (False, True)),
        ("non-Primary", "1", (False, True)),
        ("Primary", "4", (True, False)),
        ("Primary", "2", (True, False)),
        ("non-Primary", "0", (False, False)),
        ("Disconnected", "0", (False, False)),
    ],
)
def test_a_server_that_fetches_what_it_lacks_is_in_no_component(
    server: Server, tmp_path: Path, status: str, state: str, expected: tuple[bool, bool]
) -> None:
    (tmp_path / "data").mkdir()
    lines = f"wsrep_cluster_status\\t{status}\\nwsrep_local_state\\t{state}\\n"
    program(tmp_path / "bin", "mariadb", f"cat >/dev/null; printf '{lines}'")
    view = Server(Address("db-0", "db", "127.0.0.1", tmp_path, "", ""), {"SUPERUSER_PASSWORD": "x"}).observe()
    assert (view.is_primary, view.is_transfer_unfinished) == expected
    assert not server.runs


def recovering(root: Path, position: str) -> None:
    program(root / "bin", "mariadbd", f"echo 'WSREP: Recovered position: {position}' >&2")


@pytest.mark.parametrize("state", [None, "", "uuid: \nseqno: \n", f"uuid: {U}\nseqno:\n", "\0" * 90])
def test_the_position_of_data_whose_state_is_lost_is_recovered(
    server: Server, tmp_path: Path, state: str | None
) -> None:
    """The server uses the position only if the history is in its state."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/ibdata1").touch()
    if state is not None:
        (tmp_path / "data/grastate.dat").write_text(state)
    recovering(tmp_path, f"{U}:12")
    assert server.read_position(renew) == Position(U, 12)
    text = (tmp_path / "data/grastate.dat").read_text()
    assert f"\nuuid:    {U}\nseqno:   -1\n" in text
    assert read_state(tmp_path / "data") is None


def test_data_that_was_initialised_but_never_started_has_no_history(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/ibdata1").touch()
    recovering(tmp_path, "00000000-0000-0000-0000-000000000000:-1")
    assert server.read_position(renew) == EMPTY
    assert not (tmp_path / "data/grastate.dat").exists()


def test_data_without_a_recovered_position_is_not_empty(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/ibdata1").touch()
    program(tmp_path / "bin", "mariadbd", "true")
    with pytest.raises(ServerError, match="no position"):
        server.read_position(renew)


def test_a_member_that_fetches_all_data_has_no_position_until_it_has_it(server: Server, tmp_path: Path) -> None:
    """The mark of the transfer is deleted when it fails; the recovery would report the position of the other member."""
    server.prepare_to_join()
    (tmp_path / "data/ibdata1").touch()
    recovering(tmp_path, f"{U}:12")
    assert server.read_position(renew) == EMPTY


def test_to_join_does_not_change_the_state_of_data(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    state = f"version: 2.1\nuuid:    {U}\nseqno:   12\nsafe_to_bootstrap: 0\n"
    (tmp_path / "data/grastate.dat").write_text(state)
    server.prepare_to_join()
    assert (tmp_path / "data/grastate.dat").read_text() == state


@pytest.fixture
def killed(server: Server, tmp_path: Path) -> Server:
    """A server that has served, and was killed while a statement changed a table."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/ibdata1").touch()
    server.mark_complete()
    (tmp_path / "data/grastate.dat").write_text(f"uuid:    {NO_UUID}\nseqno:   -1\nsafe_to_bootstrap: 0\n")
    recovering(tmp_path, f"{U}:12")
    return server


def test_a_member_killed_while_a_table_changes_has_a_position(killed: Server, tmp_path: Path) -> None:
    """Its state still has no history: when it joins, all data is fetched."""
    assert killed.read_position(renew) == Position(U, 12)
    assert NO_UUID in (tmp_path / "data/grastate.dat").read_text()


def test_a_member_killed_while_a_table_changes_can_bootstrap(killed: Server, tmp_path: Path) -> None:
    killed.start([], killed.read_position(renew))
    killed.stop()
    assert f"uuid:    {U}\nseqno:   -1\nsafe_to_bootstrap: 1\n" == (tmp_path / "data/grastate.dat").read_text()
    assert killed.read_position(renew) == Position(U, 12)


def test_a_member_that_joins_is_not_complete_until_it_serves(killed: Server) -> None:
    """All data may be fetched meanwhile, and the state has no history then either."""
    killed.start(["127.0.0.2"], killed.read_position(renew))
    killed.stop()
    assert killed.read_position(renew) == EMPTY
    killed.mark_complete()
    assert killed.read_position(renew) == Position(U, 12)


WAITS = "while [ ! -e {go} ]; do /bin/sleep 0.01; done"


def test_a_recovery_that_lasts_long_is_alive(server: Server, tmp_path: Path) -> None:
    """The program ends only when the liveness was renewed while it ran."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/ibdata1").touch()
    recovered = f"echo 'WSREP: Recovered position: {U}:12' >&2"
    program(tmp_path / "bin", "mariadbd", f"{WAITS.format(go=tmp_path / 'go')}; {recovered}")
    assert server.read_position((tmp_path / "go").touch) == Position(U, 12)


def test_the_creation_of_data_that_lasts_long_is_alive(server: Server, tmp_path: Path) -> None:
    """The script reaches the program, which reads it late, complete."""
    text = "SELECT 1;\n" * 50_000
    program(tmp_path / "bin", "mariadb-install-db", f"mkdir {tmp_path / 'data.new'}")
    wait = WAITS.format(go=tmp_path / "go")
    program(tmp_path / "bin", "mariadbd", f"{wait}; cat > {tmp_path / 'data.new/script'}")
    server.initialize(text, (tmp_path / "go").touch)
    assert (tmp_path / "data/script").read_text() == text


def test_the_failure_of_a_program_is_reported(server: Server, tmp_path: Path) -> None:
    program(tmp_path / "bin", "mariadb-install-db", "echo disk full >&2; exit 1")
    with pytest.raises(ServerError, match="mariadb-install-db: disk full"):
        server.initialize("", renew)
    assert not (tmp_path / "data").exists()


def test_the_failure_of_a_script_does_not_quote_it(server: Server, tmp_path: Path) -> None:
    program(tmp_path / "bin", "mariadb-install-db", "true")
    program(tmp_path / "bin", "mariadbd", "echo \"ERROR: 1064 a mistake near '$(cat)' at line 1\" >&2; exit 1")
    with pytest.raises(ServerError, match="ERROR: 1064 a mistake near") as caught:
        server.initialize("CREATE USER 'a' IDENTIFIED BY\nPASSWORD '*0';", renew)
    assert "CREATE" not in str(caught.value)
    assert "*0" not in str(caught.value)


def test_with_tls_members_show_each_other_their_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    program(tmp_path / "bin", "mariadbd", f'echo "$@" > {tmp_path / "arguments"}')
    server = Server(Address("db-0", "db", "127.0.0.1", tmp_path, "my.cnf", "provider", tls="/tls"), {})
    server.start(["127.0.0.2"], EMPTY)
    while server.runs:
        pass
    found = (tmp_path / "arguments").read_text()
    assert "gmcast.listen_addr=ssl://127.0.0.1:4567" in found
    assert "socket.ssl=yes;socket.ssl_ca=/tls/ca.crt;socket.ssl_cert=/tls/tls.crt;socket.ssl_key=/tls/tls.key" in found
