"""Reconcilers: the class to derive from, its context, and its result.

class WebAppReconciler(Reconciler[WebApp]):
    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        await ctx.apply(deployment_for(app))
        return Result.requeue(after=30)
"""

from konverge.reconcile.applied import Applied, AppliedObjects
from konverge.reconcile.apply import Applier, LastApplied
from konverge.reconcile.blocking import BlockingContext
from konverge.reconcile.context import Context, ReconcileDependencies
from konverge.reconcile.event_stats import EventStats
from konverge.reconcile.finalizers import add_finalizer, finalizers_of, is_terminating, remove_finalizer
from konverge.reconcile.foreign_fields import ForeignField
from konverge.reconcile.journal import Journal, Run
from konverge.reconcile.journal_observer import JournalObserver
from konverge.reconcile.observers import (
    ActiveReconcile,
    EnqueueEvent,
    Observers,
    Outcome,
    ReconcileEnd,
    ReconcileObserver,
)
from konverge.reconcile.prune import prune
from konverge.reconcile.reconciler import Reconcile, Reconciler, reconciler_of
from konverge.reconcile.recorder import EventLimits, EventRecorder, Reference
from konverge.reconcile.results import Result
from konverge.reconcile.spans import ReconcileSpans
from konverge.reconcile.statuses import update_status

__all__ = [
    "ActiveReconcile",
    "Applied",
    "AppliedObjects",
    "Applier",
    "BlockingContext",
    "Context",
    "EnqueueEvent",
    "EventLimits",
    "EventRecorder",
    "EventStats",
    "ForeignField",
    "Journal",
    "JournalObserver",
    "LastApplied",
    "Observers",
    "Outcome",
    "Reconcile",
    "ReconcileDependencies",
    "ReconcileEnd",
    "ReconcileObserver",
    "ReconcileSpans",
    "Reconciler",
    "Reference",
    "Result",
    "Run",
    "add_finalizer",
    "finalizers_of",
    "is_terminating",
    "prune",
    "reconciler_of",
    "remove_finalizer",
    "update_status",
]
