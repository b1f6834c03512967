"""WHAT AN AUTHOR TOUCHES: a reconciler, its context, and the result.

class WebAppReconciler(Reconciler[WebApp]):
    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        await ctx.apply(deployment_for(app))
        return Result.requeue(after=30)
"""

from konverge.reconcile.apply import Applier, Memory
from konverge.reconcile.blocking import BlockingContext
from konverge.reconcile.context import Context, Tools
from konverge.reconcile.finalizers import add_finalizer, finalizers_of, is_deleting, remove_finalizer
from konverge.reconcile.journal import Journal, Run
from konverge.reconcile.prune import Applied, prune
from konverge.reconcile.reconciler import Reconcile, Reconciler, reconciler_of
from konverge.reconcile.recorder import EventLimits, EventRecorder, EventStats, Reference
from konverge.reconcile.results import Result
from konverge.reconcile.statuses import update_status

__all__ = [
    "Applied",
    "Applier",
    "BlockingContext",
    "Context",
    "EventLimits",
    "EventRecorder",
    "EventStats",
    "Journal",
    "Memory",
    "Reconcile",
    "Reconciler",
    "Reference",
    "Result",
    "Run",
    "Tools",
    "add_finalizer",
    "finalizers_of",
    "is_deleting",
    "prune",
    "reconciler_of",
    "remove_finalizer",
    "update_status",
]
