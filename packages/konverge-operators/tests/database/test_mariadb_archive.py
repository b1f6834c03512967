"""Backups of MariaDB without a server: files of the binary log, the archived log, the archiver, and the containers."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from databases import database
from konverge_operators.database.archive.base_backups import BaseBackup, Part, find_backups
from konverge_operators.database.archive.stores import ArchiveError, Directory
from konverge_operators.database.engine import ArchiveState, EngineError
from konverge_operators.database.mariadb.archive.__main__ import main
from konverge_operators.database.mariadb.archive.binary_logs import BinaryLog, read_log
from konverge_operators.database.mariadb.archive.dumps import delete_backup
from konverge_operators.database.mariadb.archive.logs import (
    LogEnd,
    find_gap,
    find_logs,
    find_pieces,
    put_end,
    put_log,
    read_end,
)
from konverge_operators.database.mariadb.archive.recovery import Restore
from konverge_operators.database.mariadb.backups import parse_state
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.mariadb.member.archiver import Archiver
from konverge_operators.database.names import secrets_of

PATH = "orders/uid/10.11"
START = 1_794_848_400
QUERY, XID, ROWS, GTID, GTID_LIST = 2, 16, 30, 162, 163


# A binary log in bytes


def event(kind: int, body: bytes, time: int = START) -> bytes:
    content = body + b"\0\0\0\0"  # the checksum
    return struct.pack("<IBIIIH", time, kind, 1, 19 + len(content), 0, 0) + content


def gtid(number: int, time: int, *, domain: int = 1, flags: int = 0) -> bytes:
    return event(GTID, struct.pack("<QIB", number, domain, flags) + b"\0" * 6, time)


def transaction(number: int, time: int = START) -> bytes:
    return gtid(number, time) + event(XID, struct.pack("<Q", number), time)


def binary_log(before: int, *events: bytes) -> bytes:
    states = [(1, 1, before), (2, 1, 999)] if before else []
    body = struct.pack("<I", len(states)) + b"".join(struct.pack("<IIQ", *one) for one in states)
    return b"\xfebin" + event(GTID_LIST, body) + b"".join(events)


def log_of(before: int, last: int, time: int = START) -> bytes:
    return binary_log(before, *(transaction(number, time) for number in range(before + 1, last + 1)))


def numbers(log: BinaryLog) -> list[int]:
    return [one.number for one in log.transactions]


def test_a_file_has_its_transactions_and_what_was_before() -> None:
    statement = gtid(7, START + 1, flags=1) + event(QUERY, b"CREATE TABLE t (i int)", START + 1)
    own = gtid(1000, START, domain=2) + event(XID, b"\0" * 8)
    old_style = gtid(8, START + 2) + event(QUERY, b"\0SAVEPOINT `COMMIT`") + event(QUERY, b"shop\0COMMIT")
    content = binary_log(5, transaction(6), own, statement, old_style)
    found = read_log(content)
    assert (found.before, found.last, numbers(found)) == (5, 8, [6, 7, 8])
    assert [one.time - START for one in found.transactions] == [0, 1, 2]
    assert content[found.transactions[0].start : found.transactions[0].end] == transaction(6)
    assert found.transactions[-1].end == len(content)


def test_a_transaction_without_its_end_was_not_committed() -> None:
    whole = binary_log(0, transaction(1), transaction(2))
    for length in range(len(whole)):
        try:
            found = numbers(read_log(whole[:length]))
        except ArchiveError:
            assert length < 4
        else:
            assert found == [1, 2][: len(found)]
            assert len(found) < 2


def test_a_file_without_transactions_ends_where_it_begins() -> None:
    assert read_log(binary_log(12)) == BinaryLog(12, ())
    assert read_log(binary_log(12)).last == 12
    assert read_log(binary_log(0)).last == 0


# The archived log


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    (tmp_path / "backup").mkdir()
    return Directory(tmp_path / "backup")


def put(store: Directory, *contents: bytes) -> None:
    for content in contents:
        put_log(store, PATH, content, read_log(content))


def replayed(store: Directory, position: int, target: datetime | None = None) -> list[int]:
    pieces = list(find_pieces(store, PATH, position, target))
    found = [numbers(read_log(binary_log(0, one.content[one.start : one.end]))) for one in pieces]
    return [number for one in found for number in one]


def test_what_follows_a_position_is_replayed_once_whoever_has_stored_it(store: Directory) -> None:
    """Two members have stored some transactions both: one was the primary after the other."""
    put(store, log_of(0, 4), log_of(4, 6), log_of(3, 9), log_of(9, 12))
    assert replayed(store, 0) == list(range(1, 13))
    assert replayed(store, 5) == list(range(6, 13))
    assert replayed(store, 12) == []


def test_a_number_that_no_transaction_has_is_no_gap(store: Directory) -> None:
    """A statement that fails on all members has a number, and is not in the log."""
    put(store, binary_log(0, transaction(1), transaction(3)), log_of(3, 5))
    assert replayed(store, 0) == [1, 3, 4, 5]
    assert find_gap(find_logs(store, PATH)) is None


def test_a_gap_ends_a_recovery_unless_the_target_is_before_it(store: Directory) -> None:
    put(store, log_of(0, 4), log_of(6, 9, START + 100))
    put_end(store, PATH, LogEnd(moment(200), 9))
    with pytest.raises(ArchiveError, match="lacks the transactions from 5 to 6"):
        replayed(store, 0)
    assert find_gap(find_logs(store, PATH)) == (4, 6)
    assert replayed(store, 6) == [7, 8, 9]
    put(store, log_of(4, 5, START + 10))
    assert replayed(store, 0, moment(5)) == [1, 2, 3, 4]


def test_a_missing_last_file_is_found(store: Directory) -> None:
    put(store, log_of(0, 4))
    put_end(store, PATH, LogEnd(moment(10), 7))
    with pytest.raises(ArchiveError, match="from 5 to 7"):
        replayed(store, 0)
    put(store, log_of(4, 7))
    assert replayed(store, 0) == list(range(1, 8))


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START + seconds, UTC)


def test_a_target_ends_before_the_first_later_transaction(store: Directory) -> None:
    """Clocks of two members may differ: what follows a later transaction is not there either."""
    times = {1: 0, 2: 1, 3: 5, 4: 4, 5: 6}
    put(store, binary_log(0, *(transaction(number, START + time) for number, time in times.items())))
    put_end(store, PATH, LogEnd(moment(10), 5))
    assert replayed(store, 0, moment(0.9)) == [1]
    assert replayed(store, 0, moment(1)) == [1, 2]
    assert replayed(store, 0, moment(4)) == [1, 2]
    assert replayed(store, 0, moment(5)) == [1, 2, 3, 4]
    assert replayed(store, 0, moment(9)) == [1, 2, 3, 4, 5]
    with pytest.raises(ArchiveError, match="the archived log ends at"):
        replayed(store, 0, moment(11))


def test_a_target_without_an_archived_log_cannot_be_restored(store: Directory) -> None:
    with pytest.raises(ArchiveError, match="there is no archived log"):
        replayed(store, 0, moment(0))
    assert replayed(store, 0) == []


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_file_ends_a_recovery(store: Directory, tmp_path: Path, damage: str) -> None:
    put(store, log_of(0, 500))
    (file,) = (tmp_path / "backup").rglob("*.gz")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    with pytest.raises(ArchiveError, match="is damaged"):
        replayed(store, 0)


def test_how_far_the_log_goes_is_stored(store: Directory, tmp_path: Path) -> None:
    assert read_end(store, PATH) is None
    put_end(store, PATH, LogEnd(moment(1), 5, START))
    assert read_end(store, PATH) == LogEnd(moment(1), 5, START)
    (tmp_path / "backup" / PATH / "log.json").write_text("{")
    with pytest.raises(ArchiveError, match=r"log\.json is damaged"):
        read_end(store, PATH)


# Backups


def backup(name: str, position: int, *, age: int = 0) -> BaseBackup:
    completed = datetime(2026, 11, 16, 12, tzinfo=UTC) - timedelta(hours=age)
    return BaseBackup(
        name=name,
        path=PATH,
        started=completed,
        completed=completed,
        major="10.11",
        wal=True,
        first=str(position),
        last=str(position),
        parts=(Part(f"{PATH}/base/{name}/part-00000", 4, "x"),),
    )


def put_backups(store: Directory, *backups: BaseBackup) -> None:
    for one in backups:
        store.put(f"{PATH}/base/{one.name}/backup.json", one.document())
        store.put(one.parts[0].key, b"dump")


def test_a_deleted_backup_takes_its_log_with_it_but_the_last_one_leaves_it(store: Directory) -> None:
    put_backups(store, backup("one", 9, age=2), backup("two", 10, age=1))
    put(store, log_of(0, 9), log_of(9, 10), log_of(10, 12))
    delete_backup(store, PATH, "one")
    assert [one.name for one in find_backups(store, PATH)] == ["two"]
    assert [one.before for one in find_logs(store, PATH)] == [10]
    assert replayed(store, 10) == [11, 12]
    delete_backup(store, PATH, "two")
    assert store.list(f"{PATH}/base/") == []
    assert [one.before for one in find_logs(store, PATH)] == [10]


def restore(root: Path, **fields: Any) -> Restore:
    values: dict[str, Any] = {"prefix": "orders", "backup": "", "target": None, "major": "10.11", "root": root}
    return Restore(**{**values, "script": "", "database": "app", "owner": "app", "password": "secret", **fields})


def test_a_recovery_never_changes_a_claim_with_other_data(store: Directory, tmp_path: Path) -> None:
    put_backups(store, backup("one", 9))
    (tmp_path / "data").mkdir()
    with pytest.raises(ArchiveError, match="has data already"):
        restore(tmp_path).run(store)
    (tmp_path / "restoring").touch()  # it was interrupted at the very end
    assert restore(tmp_path).run(store) is None
    assert (tmp_path / "restored.json").exists()
    assert restore(tmp_path).run(store) is None
    assert "secret" not in repr(restore(tmp_path))


def test_a_recovery_needs_a_backup_of_its_major_version(store: Directory, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="the destination has no backup"):
        restore(tmp_path).run(store)
    put_backups(store, backup("one", 9))
    with pytest.raises(ArchiveError, match=r"of version 10\.11, the database of version 11\.4"):
        restore(tmp_path, major="11.4").run(store)
    with pytest.raises(ArchiveError, match="no backup ended before"):
        restore(tmp_path, target=datetime(2026, 11, 16, 11, tzinfo=UTC)).run(store)


# The archiver


@dataclass
class Server:
    """The files of a member's log, and whether it is the primary."""

    root: Path
    primary: bool = True
    closed: int = 0
    files: list[str] = field(default_factory=list)

    def write(self, content: bytes) -> None:
        """Write the file that is active now."""
        (self.root / "data" / self.files[-1]).write_bytes(content)

    def close(self) -> None:
        """Begin a new file after the one that is active."""
        before = read_log((self.root / "data" / self.files[-1]).read_bytes()).last if self.files else 0
        self.begin(before)
        self.closed += 1

    def begin(self, before: int) -> None:
        self.files.append(f"binlog.{len(self.files) + 1:06}")
        self.write(binary_log(before))
        self.index()

    def purge(self) -> None:
        """Delete all files but the active one."""
        for name in self.files[:-1]:
            (self.root / "data" / name).unlink(missing_ok=True)
        self.index()

    def index(self) -> None:
        (self.root / "data" / "binlog.index").write_text("".join(f"./{name}\n" for name in self.files))

    @property
    def archiver(self) -> Archiver:
        destination = self.root.parent / "backup"
        env = {"ARCHIVE_URL": f"file://{destination}", "ARCHIVE_PATH": PATH}
        return Archiver(self.root, lambda: self.primary, self.close, env)

    def state(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.root / "archive.json").read_text())
        return found


def server(tmp_path: Path, name: str = "one", before: int = 0) -> Server:
    root = tmp_path / name
    (root / "data").mkdir(parents=True)
    found = Server(root)
    found.begin(before)
    return found


def ranges(store: Directory) -> Sequence[tuple[int, int]]:
    return [(one.before, one.last) for one in find_logs(store, PATH)]


def test_the_primary_stores_what_was_written_and_how_far_it_goes(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    archiver = member.archiver
    archiver.archive()
    assert (ranges(store), member.closed) == ([], 0)
    member.write(log_of(0, 3, START + 7))
    before = datetime.now(UTC)
    archiver.archive()
    end = read_end(store, PATH)
    assert end is not None
    assert (ranges(store), end.last, end.last_time) == ([(0, 3)], 3, START + 7)
    assert end.time >= before
    assert member.state() == {"archived": end.time.isoformat(), "error": ""}
    archiver.archive()  # nothing was written: only the time goes on
    later = read_end(store, PATH)
    assert later is not None
    assert (ranges(store), later.last, later.time > end.time, member.closed) == ([(0, 3)], 3, True, 1)


def test_a_replica_stores_nothing_and_goes_on_when_it_becomes_the_primary(store: Directory, tmp_path: Path) -> None:
    first, second = server(tmp_path, "one"), server(tmp_path, "two")
    one, two = first.archiver, second.archiver
    second.primary = False
    for member in (first, second):
        member.write(log_of(0, 3))
    one.archive()
    two.archive()
    assert not (second.root / "archive.json").exists()
    second.write(log_of(0, 5))
    first.primary, second.primary = False, True
    one.archive()
    two.archive()
    assert ranges(store) == [(0, 3), (0, 5)]
    assert replayed(store, 0) == [1, 2, 3, 4, 5]
    assert not (first.root / "archive.json").exists()


def test_a_primary_that_is_replaced_meanwhile_does_not_state_how_far_the_log_goes(
    store: Directory, tmp_path: Path
) -> None:
    member = server(tmp_path)
    member.write(log_of(0, 3))
    answers = iter([True, False])
    env = {"ARCHIVE_URL": f"file://{tmp_path / 'backup'}", "ARCHIVE_PATH": PATH}
    Archiver(member.root, lambda: next(answers), member.close, env).archive()
    assert ranges(store) == [(0, 3)]
    assert read_end(store, PATH) is None


def test_a_gap_is_reported_until_there_is_a_backup_from_after_it(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    archiver = member.archiver
    member.write(log_of(0, 3))
    archiver.archive()
    member.write(log_of(3, 6))
    member.close()
    member.purge()  # the destination was away for longer than the files are kept
    member.write(log_of(6, 8))
    for one in (archiver, member.archiver):  # also by a program that has started again
        one.archive()
        assert "lacks the transactions from 4 to 6: make a backup" in member.state()["error"]
    assert ranges(store) == [(0, 3), (6, 8)]
    put_backups(store, backup("one", 5))
    archiver.archive()
    assert "lacks" in member.state()["error"]
    put_backups(store, backup("two", 7))
    archiver.archive()
    assert member.state()["error"] == ""


def test_a_member_that_has_lost_writes_stores_nothing(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    member.write(log_of(0, 9))
    member.archiver.archive()
    other = server(tmp_path, "two")
    archiver = other.archiver
    other.write(log_of(0, 6))
    archiver.archive()
    assert "ends with the transaction 9, the member with 6: writes were lost" in other.state()["error"]
    other.write(log_of(6, 12, START + 1000))
    archiver.archive()
    assert "has another transaction 9: writes were lost" in other.state()["error"]
    (tmp_path / "backup" / PATH / "log.json").unlink()  # as if the first member had not come so far
    archiver.archive()
    assert "has another transaction 9: writes were lost" in other.state()["error"]
    assert ranges(store) == [(0, 9)]


def test_a_file_that_the_server_has_just_created_is_no_error(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    member.write(log_of(0, 3))
    archiver = member.archiver
    archiver.archive()
    member.write(b"")
    archiver.archive()
    assert member.state()["error"] == ""
    assert ranges(store) == [(0, 3)]


def test_a_destination_that_is_away_is_reported_and_tried_again(tmp_path: Path) -> None:
    member = server(tmp_path)
    archiver = member.archiver
    member.write(log_of(0, 3))
    archiver.archive()
    assert "the destination is not there" in member.state()["error"]
    (tmp_path / "backup").mkdir()
    archiver.archive()
    assert member.state()["error"] == ""
    assert ranges(Directory(tmp_path / "backup")) == [(0, 3)]


def test_a_large_transaction_is_stored_without_a_copy_of_it_in_memory(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    size = 32 * 1024 * 1024
    member.write(binary_log(0, gtid(1, START), event(ROWS, bytes(size)), event(XID, bytes(8))))
    member.close()
    tracemalloc.start()
    try:
        member.archiver.archive()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (ranges(store), peak < size // 4) == ([(0, 1)], True), peak


def test_a_state_that_cannot_be_written_does_not_end_the_archiver(store: Directory, tmp_path: Path) -> None:
    member = server(tmp_path)
    archiver = member.archiver
    member.write(log_of(0, 3))
    (member.root / "archive.new").mkdir()  # as on a full disk, the file cannot be written
    archiver.archive()
    assert ranges(store) == [(0, 3)]
    (member.root / "archive.new").rmdir()
    archiver.archive()
    assert member.state()["error"] == ""


def test_the_state_of_the_archive_is_what_the_primary_has_written() -> None:
    time = datetime(2026, 11, 16, 12, tzinfo=UTC)
    later, much_later = time + timedelta(minutes=2), time + timedelta(minutes=11)
    written = json.dumps({"archived": time.isoformat(), "error": ""})
    assert parse_state("", time) == ArchiveState()
    assert parse_state('{"archived": "", "error": "no"}', time) == ArchiveState(None, "no")
    assert parse_state(written, later) == ArchiveState(time)
    stale = ArchiveState(time, "nothing was archived since 2026-11-16T12:00:00+00:00")
    assert parse_state(written, much_later) == stale, "it archives every minute"
    for damaged in ("{", "[]", '{"archived": "x", "error": ""}'):
        with pytest.raises(EngineError, match=r"archive\.json"):
            parse_state(damaged, time)


# Containers


def test_passwords_come_from_secrets_and_are_in_no_command() -> None:
    recovery = {"fromBackup": "first", "targetTime": "2026-11-16T10:00:00Z"}
    wanted = database(engine="mariadb", version="10.11", backup={"enabled": True}, recovery=recovery)
    engine, secrets = MariaDB(), secrets_of(wanted)
    containers = [
        engine.render_backup(wanted, "10.11.19", secrets),
        engine.render_recovery(wanted, "10.11.19", secrets),
        engine.render_deletion("10.11.19"),
    ]
    commands = [one["command"][-1].rpartition("archive ")[2] for one in containers]
    assert commands == ["backup $(BACKUP_NAME)", "restore", "delete $(BACKUP_NAME)"]
    for one in containers:
        assert one["image"] == "konverge-mariadb:10.11.19"
        passwords = [variable for variable in one["env"] if variable["name"].endswith(("PASSWORD", "PWD"))]
        assert all("secretKeyRef" in variable["valueFrom"] for variable in passwords)
    values = {variable["name"]: variable.get("value") for variable in containers[1]["env"]}
    assert values["RECOVERY_TARGET"] == "2026-11-16T10:00:00+00:00"
    assert values["RECOVERY_MAJOR"] == "10.11"
    assert "IDENTIFIED BY PASSWORD '$SUPERUSER_HASH'" in str(values["RECOVERY_SCRIPT"])


# The program, with other programs in the place of the server and its clients


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of programs: a server that runs until it is stopped, and clients that do nothing."""
    directory, work = tmp_path / "bin", tmp_path / "work"
    directory.mkdir()
    work.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    for name, script in {
        "mariadb-install-db": "true",
        "mariadbd": "trap 'exit 0' TERM; while :; do sleep 0.01; done",
        "mariadb-admin": "true",
        "mariadb": 'cat >/dev/null; [ -z "$MYSQL_PWD" ] || echo app',
        "mariadb-dump": f"cat {tmp_path}/dump.sql",
    }.items():
        program(directory, name, script)
    values = {"ARCHIVE_URL": f"file://{tmp_path}/backup", "ARCHIVE_PATH": PATH, "TMPDIR": str(work)}
    source = {"SOURCE_HOST": "db", "SOURCE_USER": "replication", "MYSQL_PWD": "secret"}
    for name, value in {**values, **source, "ARCHIVE_MAJOR": "10.11", "ARCHIVE_WAL": "true"}.items():
        monkeypatch.setenv(name, value)
    return directory


def program(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


def write_dump(tmp_path: Path, position: str = "2-1-99,1-1-42", end: str = "-- Dump completed on today\n") -> None:
    (tmp_path / "dump.sql").write_text(f"CREATE DATABASE app;\n-- SET GLOBAL gtid_slave_pos='{position}';\n{end}")


def test_a_backup_has_the_position_of_its_dump_and_is_written_once(
    store: Directory, tmp_path: Path, programs: Path
) -> None:
    write_dump(tmp_path)
    assert main(["backup", "first"]) == 0
    (found,) = find_backups(store, PATH)
    assert (found.name, found.major, found.first, found.wal) == ("first", "10.11", "42", True)
    program(programs, "mariadb-dump", "exit 1")
    assert main(["backup", "first"]) == 0
    assert main(["verify", "first"]) == 0
    assert not (tmp_path / "work" / "backup").exists()
    assert main(["delete", "first"]) == 0
    assert store.list(f"{PATH}/") == []


@pytest.mark.parametrize(
    ("name", "script", "problem"),
    [
        ("mariadb-dump", "echo 'no connection' >&2; exit 2", "mariadb-dump: no connection"),
        ("mariadb-install-db", "echo 'FATAL ERROR: no space' >&2; exit 1", "FATAL ERROR: no space"),
        ("mariadb", 'cat >/dev/null; echo "--- secret" >&2; echo "ERROR 1064: no" >&2; exit 1', "ERROR 1064: no"),
        ("mariadb", "cat >/dev/null; date +%N", "tables or users were changed"),
        ("mariadbd", "echo '[ERROR] Aborting'; exit 1", "mariadbd: [ERROR] Aborting"),
        ("mariadbd", "trap 'exit 3' TERM; while :; do sleep 0.01; done", "mariadbd: "),
    ],
)
def test_what_goes_wrong_is_reported_without_statements_and_leaves_no_backup(
    store: Directory,
    tmp_path: Path,
    programs: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    script: str,
    problem: str,
) -> None:
    write_dump(tmp_path)
    program(programs, name, script)
    if name == "mariadbd":
        program(programs, "mariadb-admin", "! grep -q Aborting temporary.log")
    assert main(["backup", "first"]) == 1
    printed = capfd.readouterr().err
    assert problem in printed
    assert "secret" not in printed
    assert find_backups(store, PATH) == []


def test_a_dump_that_is_cut_off_or_changed_is_damaged(
    store: Directory, tmp_path: Path, programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_dump(tmp_path, end="")
    assert main(["backup", "first"]) == 1
    assert "the backup is damaged: it is not complete" in capfd.readouterr().err
    write_dump(tmp_path)
    assert main(["backup", "first"]) == 0
    (stored,) = (tmp_path / "backup").rglob("part-00000")
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.write_bytes(content)
    assert main(["verify", "first"]) == 1
    assert "the checksum of part-00000 differs" in capfd.readouterr().err
    assert main(["verify", "second"]) == 1
    assert "the destination has no backup second" in capfd.readouterr().err
    assert programs.exists()
