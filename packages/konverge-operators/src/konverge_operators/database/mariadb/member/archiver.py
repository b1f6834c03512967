"""The archiver of a member: while it is the primary it stores its binary log at the destination of the backups.

1. The server is asked to begin another file when something was written in the last minute, or when one is full; what is
   closed is stored.
2. How far the log goes is stored after the files, and only if this member is the recorded primary afterwards: then no
   other one had accepted writes when the last file was closed.
3. The archive is of one history. Transactions that it lacks, and that this member does not have any more, are a gap,
   which is reported until there is a backup from after it. A member that lacks transactions of the archive, or has
   others in their place, stores nothing.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.base_backups import find_backups
from konverge_operators.database.archive.stores import ArchiveError, Store, open_store
from konverge_operators.database.mariadb.archive.binary_logs import BinaryLog, read_log
from konverge_operators.database.mariadb.archive.logs import LogEnd, find_gap, find_logs, put_end, put_log, read_end

__all__ = ["Archiver", "close_log"]

_TICK: Final = 1.0
_INTERVAL: Final = 60.0
"""Seconds after which the log is archived although no file is full: what a disaster may cost."""
_LIMIT: Final = 5.0


class Archiver:
    """Archives the log of a member in a thread, and writes its state into `archive.json` beside the data.

    `is_primary` reads the record, `close` begins a new file of the log.
    """

    def __init__(
        self,
        root: Path,
        is_primary: Callable[[], bool],
        close: Callable[[], None],
        environment: Mapping[str, str],
    ) -> None:
        self._data, self._state = root / "data", root / "archive.json"
        self._is_primary, self._close, self._environment = is_primary, close, environment
        self._path = environment["ARCHIVE_PATH"]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last: int | None = None
        self._last_time = 0
        self._gap: tuple[int, int] | None = None
        self._stored: set[str] = set()
        self._is_checked = False
        self._archived_at: datetime | None = None
        self._error = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_LIMIT)

    def _run(self) -> None:
        before, active = time.monotonic(), self._files()[-1:]
        while not self._stopping.wait(_TICK):
            if time.monotonic() - before >= _INTERVAL or self._files()[-1:] != active:
                self.archive()
                before, active = time.monotonic(), self._files()[-1:]

    def archive(self) -> None:
        """Archive what there is, if this member is the primary, and write the state."""
        try:
            if not self._is_primary():
                self._forget()
                return
            self._archive(open_store(self._environment))
            error = ""
        except Exception as problem:  # whatever it is, the server goes on, and the next time may succeed
            error = str(problem) if isinstance(problem, ArchiveError) else f"{type(problem).__name__}: {problem}"
        if error and error != self._error:
            _log(error)
        self._error = error
        with suppress(OSError):  # a full disk: what was written before stays, and the next time may succeed
            self._write_state()

    def _write_state(self) -> None:
        archived = self._archived_at.isoformat() if self._archived_at is not None else ""
        temporary = self._state.with_suffix(".new")
        temporary.write_text(json.dumps({"archived": archived, "error": self._error}))
        temporary.replace(self._state)

    def _forget(self) -> None:
        """Forget what is archived: another member goes on with it."""
        self._is_checked, self._archived_at = False, None
        self._state.unlink(missing_ok=True)

    def _archive(self, store: Store) -> None:
        started = datetime.now(UTC)
        files = self._files()
        if files and _read(files[-1]).transactions:
            self._close()
            files = self._files()
        if not self._is_checked:
            self._check(store, files)
        for file in files[:-1]:
            if file.name not in self._stored:
                self._store(store, file)
                self._stored.add(file.name)
        if self._last is not None and self._is_primary():
            put_end(store, self._path, LogEnd(started, self._last, self._last_time))
            self._archived_at = started
        self._report_gap(store)

    def _store(self, store: Store, file: Path) -> None:
        log = _read(file)
        if self._last is None:
            self._last = log.before
        if log.before > self._last:
            self._gap = (self._last, log.before)
        if log.transactions and log.last > self._last:
            with _mapped(file) as content:
                put_log(store, self._path, content, log)
            self._last, self._last_time = log.last, log.last_time

    def _check(self, store: Store, files: list[Path]) -> None:
        """Read what is archived, and compare it with what this member has."""
        logs, end = find_logs(store, self._path), read_end(store, self._path)
        self._last = max((one.last for one in logs), default=end.last if end is not None else None)
        self._last_time = next((one.last_time for one in logs if one.last == self._last), end.last_time if end else 0)
        self._gap, self._stored = find_gap(logs), set()
        own = [_read(file) for file in files]
        has = max((one.last for one in own), default=0)
        if self._last is not None and self._last > has:
            raise ArchiveError(
                _describe_loss(f"the archive ends with the transaction {self._last}, the member with {has}")
            )
        archived = {one.last: one.last_time for one in logs}
        if end is not None and end.last_time:
            archived[end.last] = end.last_time
        if (other := _find_other(own, archived)) is not None:
            raise ArchiveError(_describe_loss(f"the archive has another transaction {other}"))
        self._is_checked = True

    def _report_gap(self, store: Store) -> None:
        """Raise while there is no backup from after a gap."""
        if self._gap is None:
            return
        before, after = self._gap
        if all(int(one.first) < after for one in find_backups(store, self._path)):
            raise ArchiveError(f"the archive lacks the transactions from {before + 1} to {after}: make a backup")
        self._gap = None

    def _files(self) -> list[Path]:
        """Return the files of the binary log; the last one is being written."""
        try:
            names = (self._data / "binlog.index").read_text().split()
        except OSError:
            return []
        return [path for path in (self._data / name for name in names) if path.exists()]


def close_log(data: Path, password: str) -> None:
    """Let the server begin a new file of its log."""
    done = subprocess.run(
        ["mariadb", "--no-defaults", "--socket=./mariadb.sock", "--user=root", "--batch"],
        input=b"FLUSH BINARY LOGS;",
        cwd=data,
        env={**os.environ, "MYSQL_PWD": password},
        capture_output=True,
        timeout=_LIMIT,
        check=False,
    )
    if done.returncode:
        raise ArchiveError(f"the log cannot be closed: {done.stderr.decode(errors='replace')[-300:]}")


def _log(message: str) -> None:
    sys.stderr.write(f"archive: {message}\n")
    sys.stderr.flush()


def _read(file: Path) -> BinaryLog:
    if not file.stat().st_size:
        return BinaryLog(0, ())  # the server has just created it
    with _mapped(file) as content:
        return read_log(content)


@contextmanager
def _mapped(file: Path) -> Generator[mmap.mmap]:
    """Map a file: one with a large transaction may be larger than the memory of the container."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content


def _find_other(logs: list[BinaryLog], archived: Mapping[int, int]) -> int | None:
    """Return a transaction that was committed in another second than the one of its number in the archive, or None."""
    own = (one for log in logs for one in log.transactions)
    return next((one.number for one in own if archived.get(one.number, one.time) != one.time), None)


def _describe_loss(what: str) -> str:
    return f"{what}: writes were lost. Set another prefix or destination, and make a backup"
