"""Recovery: a new data directory from a dump and the archived log, up to a time, checked by a query.

The data gets its name when it is complete: a second run after a crash starts anew, one after the end does nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.base_backups import BaseBackup, find_backups
from konverge_operators.database.archive.recovery import choose_backup
from konverge_operators.database.archive.stores import ArchiveError, Store
from konverge_operators.database.mariadb.archive.binary_logs import DOMAIN
from konverge_operators.database.mariadb.archive.dumps import load
from konverge_operators.database.mariadb.archive.logs import Piece, find_pieces
from konverge_operators.database.mariadb.archive.temporary_server import TemporaryServer, running_server, sync, sync_one

__all__ = ["Restore"]

_READ: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Restore:
    """What to restore: `prefix` is where the backups are looked for, `backup` one of them by name, or "".

    `root` is the mounted claim. `script` sets the passwords at the end. Then a query must succeed, in the database of
    the application, as its owner with the new password.
    """

    prefix: str
    backup: str
    target: datetime | None
    major: str
    root: Path
    script: str
    database: str
    owner: str
    password: str = field(repr=False)

    def run(self, store: Store) -> BaseBackup | None:
        """Restore; return the backup that was used, None if everything was done before."""
        mark, started, data = self.root / "restored.json", self.root / "restoring", self.root / "data"
        if mark.exists():
            return None
        if data.exists():
            if not started.exists():
                raise ArchiveError("the claim has data already: a recovery needs a Database whose name has no claims")
            started.rename(mark)
            return None
        backup = self._choose(store)
        started.write_text(json.dumps({"backup": backup.name, "path": backup.path, "target": str(self.target or "")}))
        self._fill(store, backup, self.root / "data.restoring")
        (self.root / "data.restoring").rename(data)
        sync_one(self.root)
        started.rename(mark)
        return backup

    def _choose(self, store: Store) -> BaseBackup:
        backups = find_backups(store, self.prefix)
        of_major = [one for one in backups if one.major == self.major]
        backup = choose_backup(of_major or backups, self.backup, self.target)
        if backup.major != self.major:
            raise ArchiveError(f"the backup is of version {backup.major}, the database of version {self.major}")
        return backup

    def _fill(self, store: Store, backup: BaseBackup, data: Path) -> None:
        """Fill a directory with a dump and the log after it, and check it."""
        work = Path(os.environ.get("TMPDIR", "/tmp")) / "log"
        try:
            with running_server(data) as server:
                position = load(store, backup.parts, server)
                if backup.wal:
                    for piece in find_pieces(store, backup.path, position, self.target):
                        _apply(piece, server, work)
                self._check(server)
                server.finish()
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        sync(data)

    def _check(self, server: TemporaryServer) -> None:
        """Set the passwords, then read as the owner."""
        query = f"USE `{self.database}`; SELECT COUNT(*) FROM information_schema.TABLES;"
        try:
            server.execute(self.script)
            server.execute(query, self.owner, self.password)
        except ArchiveError as error:
            raise ArchiveError(f"the check of the restored data failed: {error}") from error


def _apply(piece: Piece, server: TemporaryServer, work: Path) -> None:
    """Execute a part of a file of the log."""
    work.write_bytes(piece.content)
    places = [f"--start-position={piece.start}", f"--stop-position={piece.end}", f"--do-domain-ids={DOMAIN}"]
    command = ["mariadb-binlog", "--no-defaults", *places, str(work)]
    errors = work.with_suffix(".err")
    with errors.open("wb") as output, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output) as reader:
        assert reader.stdout is not None
        try:
            with server.loading("the log cannot be replayed") as stream:
                shutil.copyfileobj(reader.stdout, stream, _READ)
        except BaseException:
            reader.kill()
            raise
    work.unlink()
    if reader.returncode:
        raise ArchiveError(f"mariadb-binlog: {errors.read_text(errors='replace')[-500:]}")
