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

from konverge_operators.database.archive.base_backups import BaseBackup, find_backups
from konverge_operators.database.archive.stores import ArchiveError, open_store
from konverge_operators.database.mariadb.archive.dumps import delete_backup, verify_backup, write_backup
from konverge_operators.database.mariadb.archive.passwords import password_hash
from konverge_operators.database.mariadb.archive.recovery import Restore

__all__ = ["main"]

_MESSAGE: Final = Path("/dev/termination-log")
_USERS: Final = ("SUPERUSER", "REPLICATION", "APPLICATION")


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code."""
    command, *rest = arguments
    try:
        found = _COMMANDS[command](*rest)
    except Exception as error:
        message = str(error) if isinstance(error, ArchiveError) else f"{type(error).__name__}: {error}"
        sys.stderr.write(f"archive: {message}\n")
        _report(message)
        return 1
    if found is not None:
        times = {"started": found.started.isoformat(), "completed": found.completed.isoformat()}
        _report(json.dumps({"name": found.name, "size": found.size, **times}))
    return 0


def _path() -> str:
    return os.environ["ARCHIVE_PATH"]


def _work() -> Path:
    return Path(os.environ.get("TMPDIR", "/tmp")) / "backup"


def _backup(name: str) -> BaseBackup:
    return write_backup(open_store(), _path(), name, _work(), wal=os.environ["ARCHIVE_WAL"] == "true")


def _verify(name: str) -> BaseBackup:
    store = open_store()
    found = [one for one in find_backups(store, _path()) if one.name == name]
    if not found:
        raise ArchiveError(f"the destination has no backup {name}")
    verify_backup(store, found[0], _work())
    return found[0]


def _delete(name: str) -> None:
    delete_backup(open_store(), _path(), name)


def _restore() -> BaseBackup | None:
    target = os.environ["RECOVERY_TARGET"]
    restore = Restore(
        prefix=_path(),
        backup=os.environ["BACKUP_NAME"],
        target=datetime.fromisoformat(target) if target else None,
        major=os.environ["RECOVERY_MAJOR"],
        root=Path(os.environ["RECOVERY_DATA"]),
        script=_with_passwords(os.environ["RECOVERY_SCRIPT"]),
        database=os.environ["RECOVERY_DATABASE"],
        owner=os.environ["RECOVERY_OWNER"],
        password=os.environ["APPLICATION_PASSWORD"],
    )
    return restore.run(open_store())


def _with_passwords(script: str) -> str:
    for user in _USERS:
        script = script.replace(f"${user}_HASH", password_hash(os.environ[f"{user}_PASSWORD"]))
    return script


def _report(message: str) -> None:
    with suppress(OSError):  # there is no such file outside of a container
        _MESSAGE.write_text(message[:4000])


_COMMANDS: Final[dict[str, Callable[..., BaseBackup | None]]] = {
    "backup": _backup,
    "verify": _verify,
    "delete": _delete,
    "restore": _restore,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
