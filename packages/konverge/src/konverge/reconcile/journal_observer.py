"""The journal as an observer of reconciles."""

from __future__ import annotations

from konverge.client import WriteEvent
from konverge.objects import Key
from konverge.reconcile.journal import Journal, Run
from konverge.reconcile.observers import ActiveReconcile, EnqueueEvent, ReconcileEnd, ReconcileObserver

__all__ = ["JournalObserver"]


class JournalObserver(ReconcileObserver):
    """Write the journal of one controller. A reconcile whose begin was not recorded has no entries."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def enqueue(self, event: EnqueueEvent) -> None:
        """Record why a key is enqueued."""
        self.journal.add_reason(event.key, event.reason, since=event.since)

    def begin(self, reconcile: ActiveReconcile) -> None:
        """Begin a run."""
        run = self.journal.begin(reconcile.key, attempt=reconcile.attempt, reconcile_id=reconcile.reconcile_id)
        reconcile.state[self] = run

    def read(self, reconcile: ActiveReconcile, kind: str, key: Key, found: str) -> None:
        """Record a read."""
        run: Run | None = reconcile.state.get(self)
        if run is not None:
            run.record_read(kind, key, found)

    def write(self, reconcile: ActiveReconcile, write: WriteEvent) -> None:
        """Record a write."""
        run: Run | None = reconcile.state.get(self)
        if run is not None:
            verb = f"{write.verb} {write.subresource}" if write.subresource else write.verb
            run.record_write(verb, write.kind.kind, write.key, write.version)

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        """End a run."""
        run: Run | None = reconcile.state.get(self)
        if run is not None:
            run.warning = reconcile.warning
            run.finish(result=end.result, error=end.error)
