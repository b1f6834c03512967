"""What happens for each Backup."""

import hashlib
import json

from backup_operator.api import Backup
from backup_operator.store import Store, StoreError
from konverge import Context, Reconciler, Result, Retry
from konverge.k8s.core.v1 import ConfigMap


class BackupReconciler(Reconciler[Backup]):
    """Keeps a copy of the ConfigMap in the object store, and deletes it before the Backup is gone."""

    finalizer = "example.com/stored-backup"

    async def reconcile(self, obj: Backup, ctx: Context) -> None:
        source = await ctx.get(ConfigMap, obj.spec.source)
        if source is None:  # the last copy is kept: that is what a backup is for
            ctx.set_ready(obj, False, reason="SourceNotFound", message=f"no ConfigMap {obj.spec.source}")
            await ctx.update_status(obj)
            return
        content = json.dumps(source.data, sort_keys=True).encode()
        checksum = hashlib.sha256(content).hexdigest()
        if checksum != obj.status.checksum:
            await self._store(obj, ctx, content)
        obj.status.path = path_of(obj)
        obj.status.checksum = checksum
        ctx.set_ready(obj, True, reason="Stored")
        await ctx.update_status(obj)

    async def _store(self, obj: Backup, ctx: Context, content: bytes) -> None:
        try:
            await ctx.shared(Store).put(path_of(obj), content)
        except StoreError as error:
            ctx.set_ready(obj, False, reason="StoreUnavailable", message=str(error))
            await ctx.update_status(obj)
            raise Retry(str(error), after=20) from error

    async def finalize(self, obj: Backup, ctx: Context) -> Result:
        # Whatever the status says: a process may have ended between PUT and the update of the status.
        try:
            await ctx.shared(Store).delete(path_of(obj))
        except StoreError as error:
            raise Retry(str(error), after=20) from error
        return Result.done()


def path_of(backup: Backup) -> str:
    """Return the path of the copy, which follows from the object alone and never changes."""
    return f"/{backup.spec.bucket}/{backup.namespace}/{backup.name}.json"
