"""The reconciler of Database: one pass, then the status."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar, TypeAlias

from prometheus_client import Counter
from prometheus_client.registry import Collector

from konverge import ApiError, Conflict, Context, Key, KonvergeError, Reconciler, Result
from konverge.workflow import DerivedPhase, PhaseMetrics
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.backups.status import ArchiveStates, BackupMetrics
from konverge_operators.database.deletion import remove
from konverge_operators.database.engine import Engine, EngineError
from konverge_operators.database.foreign import ForeignFields
from konverge_operators.database.passes import Pass
from konverge_operators.database.phases import derive_phase, phases
from konverge_operators.database.status import report_primary, set_status

__all__ = ["DatabaseReconciler", "Engines"]

Engines: TypeAlias = Mapping[str, Engine]

_READY_INTERVAL, _PROGRESS_INTERVAL = 30.0, 5.0


class DatabaseReconciler(Reconciler[Database]):
    """Reconciles databases of these engines, by name."""

    finalizer: ClassVar[str] = "example.com/database"

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self.metrics = PhaseMetrics("database")
        self.backups = BackupMetrics()
        self._archives = ArchiveStates()
        self._foreign = ForeignFields()
        self.failovers = Counter("database_failovers", "Failovers of all databases", registry=None)

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return *self.metrics.collectors, *self.backups.collectors, self.failovers

    async def reconcile(self, database: Database, ctx: Context, /) -> Result:
        current = Pass(database, ctx, self._engines[database.spec.engine])
        try:
            await current.run()
            await self._foreign.report(current.database, ctx)
            archive = await self._archives.observe(current.target, self._engines[database.spec.engine], current.facts)
            current.facts = replace(current.facts, archive=archive)
        except (EngineError, ApiError, OSError) as error:
            if not isinstance(error, Conflict):
                await _report_error(current.database, ctx, error)
            raise
        database = current.database
        derived = derive_phase(database, current.facts)
        self._report(database, ctx, derived, current.facts.primary)
        set_status(database, ctx, current.facts, derived, version=current.version)
        self.backups.record(database, current.facts)
        await ctx.update_status(database)
        is_stable = derived.phase in (Phase.READY, Phase.HIBERNATED)
        return Result.requeue(after=_READY_INTERVAL if is_stable else _PROGRESS_INTERVAL)

    async def finalize(self, database: Database, ctx: Context, /) -> Result:
        current = Pass(database, ctx, self._engines[database.spec.engine])
        await current.observe()
        derived = derive_phase(database, current.facts)
        self._report(database, ctx, derived, current.facts.primary)
        set_status(database, ctx, current.facts, derived, version=current.version)
        await ctx.update_status(database)
        return await remove(current.target, ctx, self._engines[database.spec.engine], current.facts)

    def gone(self, key: Key) -> None:
        self.metrics.forget(key)
        self.backups.forget(key)
        self._archives.forget(key)
        self._foreign.forget(key)

    def _report(self, database: Database, ctx: Context, derived: DerivedPhase[Phase], primary: str) -> None:
        """Record a change of the phase, and a failover that has ended."""
        before = database.status.phase
        self.metrics.record(database.key, phases, before, derived.phase)
        if before is Phase.FAILING_OVER and primary:
            self.failovers.inc()
            ctx.event("FailedOver", f"{primary} accepts writes", warning=True, action="Reconcile")
        report_primary(ctx, database.status.primary, primary)
        if derived.phase is not before:
            message = f"{derived.reason}: {derived.message}"
            ctx.event(derived.phase.value, message, warning=derived.warning, action="Reconcile")


async def _report_error(database: Database, ctx: Context, error: Exception) -> None:
    database.status.last_error, database.status.retry_count = str(error), ctx.attempt
    with suppress(KonvergeError):  # the error itself matters more
        await ctx.update_status(database)
