"""Recovery: a new data directory from a base backup and the archived log, up to a time, checked by a query.

The result has a mark beside it, written last: a second run after a crash starts anew, one after the end does nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.base_backups import BaseBackup, find_backups, unpack, verify_files
from konverge_operators.database.archive.segments import last_archived
from konverge_operators.database.archive.stores import ArchiveError, Store

__all__ = ["Restore", "choose_backup"]

_NO_TARGET: Final = "recovery ended before configured recovery target was reached"
_LOG_LINES: Final = 5
_INTERVAL: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class Restore:
    """What to restore: `prefix` is where the backups are looked for, `backup` one of them by name, or "".

    `data` is the mounted claim, `script` is run by psql at the end: it sets the passwords and has the query that must
    succeed. `settings` is what Patroni starts with.
    """

    prefix: str
    backup: str
    target: datetime | None
    major: str
    data: Path
    database: str
    script: str
    settings: str

    @property
    def directory(self) -> Path:
        return self.data / f"pgdata-{self.major}"

    def run(self, store: Store) -> BaseBackup | None:
        """Restore; return the backup that was used, None if everything was done before."""
        mark = self.data / "restored.json"
        if mark.exists():
            return None
        backups = find_backups(store, self.prefix)
        of_major = [one for one in backups if one.major == self.major]
        backup = choose_backup(of_major or backups, self.backup, self.target)
        if backup.major != self.major:
            raise ArchiveError(f"the backup is of version {backup.major}, the database of version {self.major}")
        target = self._checked_target(store, backup)
        self._prepare()
        unpack(store, backup.parts, self.directory)
        verify_files(self.directory, wal=backup.wal)
        self._recover(backup, target)
        self._leave()
        document = {"backup": backup.name, "path": backup.path, "target": self.target and self.target.isoformat()}
        temporary = mark.with_suffix(".new")
        temporary.write_text(json.dumps(document))
        temporary.replace(mark)
        self._started.unlink()
        return backup

    @property
    def _started(self) -> Path:
        """The mark of a recovery that has begun: what is in the directory then is its own."""
        return self.data / "restoring"

    def _prepare(self) -> None:
        """Make the directory empty, unless it has data of something else."""
        if self.directory.exists() and not self._started.exists():
            raise ArchiveError("the claim has data already: a recovery needs a Database whose name has no claims")
        self._started.touch()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)

    def _checked_target(self, store: Store, backup: BaseBackup) -> datetime | None:
        """Return the target; one after the end of the archive is an error, as what came in between is not known."""
        if self.target is None or not backup.wal:
            return None
        end = last_archived(store, backup.path)
        if end is None or end < self.target:
            known = "there is no archived log" if end is None else f"the archived log ends at {end.isoformat()}"
            raise ArchiveError(f"{self.target.isoformat()} cannot be restored: {known}")
        return self.target

    def _recover(self, backup: BaseBackup, target: datetime | None) -> None:
        """Let PostgreSQL replay the log, then check the result.

        A database without a commit after the target ends its log before it. The archive goes on until then, so this is
        the state at that time.
        """
        (self.directory / "recovery.signal").touch()
        for name in ("standby.signal", "postmaster.pid", "patroni.dynamic.json"):
            (self.directory / name).unlink(missing_ok=True)
        log = Path(_temporary()) / "recovery.log"
        error = self._replay(backup, target, log)
        if target is not None and _NO_TARGET in error:
            error = self._replay(backup, None, log)
        if error:
            raise ArchiveError(f"recovery: {error}")

    def _replay(self, backup: BaseBackup, target: datetime | None, log: Path) -> str:
        """Run PostgreSQL until it is promoted, check it, and stop it; return why it was not promoted, or ""."""
        configuration, access = log.with_name("recovery.conf"), log.with_name("recovery_hba.conf")
        settings = {**_settings(self.directory, backup, target), "hba_file": str(access)}
        configuration.write_text("".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items()))
        access.write_text("local all all trust\n")
        command = ["postgres", "-D", str(self.directory), "-c", f"config_file={configuration}"]
        env = {**os.environ, "ARCHIVE_PATH": backup.path}
        with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=env) as server:
            try:
                if is_promoted := _wait_for_promotion(server):
                    self._check()
            finally:
                server.send_signal(signal.SIGINT)  # the fast shutdown
        lines = log.read_text(errors="replace").splitlines()
        sys.stderr.write("\n".join([*lines, ""]))
        problems = [one for one in lines if "FATAL" in one or "archive:" in one]
        return "" if is_promoted else "; ".join((problems or lines)[-_LOG_LINES:]) or "PostgreSQL did not start"

    def _check(self) -> None:
        """Run the script, as the superuser, in the application's database."""
        options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--tuples-only", f"--host={_temporary()}"]
        command = ["psql", *options, "--username=postgres", f"--dbname={self.database}"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        result = subprocess.run(command, input=self.script, capture_output=True, text=True, check=False, env=env)
        if result.returncode:
            raise ArchiveError(f"the check of the restored data failed: {result.stderr.strip()[-500:]}")

    def _leave(self) -> None:
        """Leave the directory as Patroni finds that of a member."""
        (self.directory / "recovery.signal").unlink(missing_ok=True)
        (self.directory / "patroni.dynamic.json").write_text(self.settings)


def choose_backup(backups: list[BaseBackup], name: str, target: datetime | None) -> BaseBackup:
    """Return a backup by its name, else the newest that ended before the target.

    Raises: ArchiveError when there is none, with what there is.
    """
    found = [one for one in backups if name in ("", one.name)]
    if not found:
        raise ArchiveError(f"the destination has no backup {name}".rstrip())
    early = [one for one in found if target is None or one.completed <= target]
    if not early:
        first = found[0].completed.isoformat()
        raise ArchiveError(f"no backup ended before {target and target.isoformat()}: the first one ended at {first}")
    return early[-1]


def _settings(directory: Path, backup: BaseBackup, target: datetime | None) -> dict[str, str]:
    """Return the configuration of PostgreSQL while it replays: no network, no connections before the end."""
    found = {
        "data_directory": str(directory),
        "listen_addresses": "",
        "unix_socket_directories": _temporary(),
        "hot_standby": "off",
        "archive_mode": "off",
        "recovery_target_action": "promote",
        "restore_command": f'"{sys.executable}" -m konverge_operators.database.archive wal-get %f %p',
    }
    if not backup.wal:
        found |= {"restore_command": "false", "recovery_target": "immediate"}
    if target is not None:
        found["recovery_target_time"] = target.isoformat(sep=" ")
    return found


def _temporary() -> str:
    return os.environ.get("TMPDIR", "/tmp")


def _wait_for_promotion(server: subprocess.Popen[bytes]) -> bool:
    """Wait until PostgreSQL accepts connections, which it does at the end only; report whether it has not stopped."""
    while subprocess.run(["pg_isready", "--quiet", f"--host={_temporary()}"], check=False).returncode:
        if server.poll() is not None:
            return False
        time.sleep(_INTERVAL)
    return True


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
