"""The commands of the program. What went wrong is the last line of the log, and the message of the container."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.base_backups import (
    BaseBackup,
    delete_backup,
    find_backups,
    verify_backup,
    write_backup,
)
from konverge_operators.database.archive.recovery import Restore
from konverge_operators.database.archive.segments import get_segment, put_segment
from konverge_operators.database.archive.stores import ArchiveError, open_store

__all__ = ["main"]

_MISSING: Final = 1
_NOT_STORED: Final = 1
"""Of wal-put: PostgreSQL counts the failure and tries again. Above 125 its archiver would end without counting it."""
_FATAL: Final = 200
"""Above 125: PostgreSQL then ends a recovery, instead of taking this for the end of the log."""
_MESSAGE: Final = Path("/dev/termination-log")


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code."""
    command, *rest = arguments
    try:
        return _COMMANDS[command](*rest)
    except Exception as error:  # a full disk, too: an exit code of 1 would look like the end of the log
        message = str(error) if isinstance(error, ArchiveError) else f"{type(error).__name__}: {error}"
        sys.stderr.write(f"archive: {message}\n")
        if not command.startswith("wal-"):
            _report(message)
        return _NOT_STORED if command == "wal-put" else _FATAL


def _path() -> str:
    return os.environ["ARCHIVE_PATH"]


def _work() -> Path:
    return Path(os.environ.get("TMPDIR", "/tmp")) / "backup"


def _put(file: str) -> int:
    put_segment(open_store(), _path(), Path(file))
    return 0


def _get(name: str, target: str) -> int:
    return 0 if get_segment(open_store(), _path(), name, Path(target)) else _MISSING


def _backup(name: str) -> int:
    wal = os.environ["ARCHIVE_WAL"] == "true"
    _report_backup(write_backup(open_store(), _path(), name, _work(), wal=wal))
    return 0


def _verify(name: str) -> int:
    store = open_store()
    found = [one for one in find_backups(store, _path()) if one.name == name]
    if not found:
        raise ArchiveError(f"the destination has no backup {name}")
    verify_backup(store, found[0], _work())
    _report_backup(found[0])
    return 0


def _delete(name: str) -> int:
    delete_backup(open_store(), _path(), name)
    return 0


def _restore() -> int:
    target = os.environ.get("RECOVERY_TARGET", "")
    restore = Restore(
        prefix=_path(),
        backup=os.environ["BACKUP_NAME"],
        target=datetime.fromisoformat(target) if target else None,
        major=os.environ["RECOVERY_MAJOR"],
        data=Path(os.environ["RECOVERY_DATA"]),
        database=os.environ["RECOVERY_DATABASE"],
        script=os.environ["RECOVERY_SCRIPT"],
        settings=os.environ["RECOVERY_SETTINGS"],
    )
    used = restore.run(open_store())
    if used is not None:
        _report_backup(used)
    return 0


def _report_backup(backup: BaseBackup) -> None:
    times = {"started": backup.started.isoformat(), "completed": backup.completed.isoformat()}
    _report(json.dumps({"name": backup.name, "size": backup.size, **times}))


def _report(message: str) -> None:
    with suppress(OSError):  # there is no such file outside of a container
        _MESSAGE.write_text(message[:4000])


_COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "wal-put": _put,
    "wal-get": _get,
    "backup": _backup,
    "verify": _verify,
    "delete": _delete,
    "restore": _restore,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
