"""A dump, and the server that it is loaded into, with programs that only look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge_operators.database.archive.base_backups import PartReader
from konverge_operators.database.archive.stores import ArchiveError, Directory
from konverge_operators.database.mariadb.archive.dumps import write_backup
from konverge_operators.database.mariadb.archive.temporary_server import running_server

MARIADBD = """\
trap 'echo "[ERROR] mariadbd got signal 11" >&2; exit {code}' TERM
while true; do sleep 0.05; done
"""
DUMP = """\
echo "-- $@"
echo "-- SET GLOBAL gtid_slave_pos='1-1-42,2-1-7';"
echo "-- Dump completed on a day"
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of programs that succeed."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("mariadb-install-db", "mariadb-admin", "mariadb"):
        write(directory / name, "cat > /dev/null")
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return directory


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_data_of_a_server_that_does_not_stop_well_does_not_count(programs: Path, tmp_path: Path) -> None:
    write(programs / "mariadbd", MARIADBD.format(code=3))
    with pytest.raises(ArchiveError, match="mariadbd got signal 11"), running_server(tmp_path / "data"):
        pass


def test_data_of_a_server_that_has_stopped_counts(programs: Path, tmp_path: Path) -> None:
    write(programs / "mariadbd", MARIADBD.format(code=0))
    with running_server(tmp_path / "data"):
        assert (tmp_path / "data" / "temporary.log").exists()
    assert not (tmp_path / "data" / "temporary.log").exists()


def test_a_dump_is_of_one_state_with_the_history_of_tables_that_have_one(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the option old versions of rows would be lost, and nothing would show it."""
    write(programs / "mariadbd", MARIADBD.format(code=0))
    write(programs / "mariadb-dump", DUMP)
    for name, value in {"SOURCE_HOST": "db", "SOURCE_USER": "replication", "ARCHIVE_MAJOR": "10.11"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "backup").mkdir()
    store = Directory(tmp_path / "backup")
    found = write_backup(store, "path", "one", tmp_path / "work", wal=True)
    assert (found.first, found.wal) == ("42", True)
    options = PartReader(store, found.parts).readall().decode().splitlines()[0].split()
    assert {"--single-transaction", "--dump-history", "--system=users"} <= set(options)
