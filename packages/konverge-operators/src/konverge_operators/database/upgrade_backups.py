"""The backups of a major upgrade: one of the old version before it, one of the new version after it.

The name of each is recorded in the status before it is created, so that a crash makes no second one, and an upgrade
that is tried again never takes an older backup for its own.
"""

from __future__ import annotations

from itertools import count

from konverge import Context
from konverge.errors import AlreadyExists
from konverge.objects import ObjectMeta
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import BackupSpec, DatabaseBackup
from konverge_operators.database.names import backup_labels, short_name

__all__ = ["create_backup", "free_name"]


async def free_name(database: Database, ctx: Context, purpose: str) -> str:
    """Return the name of a backup that does not exist; "" without backups. The server decides, a cache may be late."""
    if not database.spec.backup.enabled:
        return ""
    known = {one.name for one in await ctx.client.list(DatabaseBackup, namespace=database.namespace)}
    names = (short_name(f"{database.name}-{purpose}-{number}") for number in count(1))
    return next(name for name in names if name not in known)


async def create_backup(database: Database, ctx: Context, name: str) -> None:
    """Create a backup, unless it exists."""
    metadata = ObjectMeta(name=name, namespace=database.namespace, labels=backup_labels(database.name))
    try:
        await ctx.client.create(DatabaseBackup(metadata=metadata, spec=BackupSpec(database=database.name)))
    except AlreadyExists:
        return
    ctx.event("BackupRequested", f"{name}, for the major upgrade", action="Upgrade")
