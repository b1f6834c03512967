"""The journal as an observer of reconciles: every fact of a reconcile is in its entry."""

from __future__ import annotations

from gadgets import Gadget
from konverge import Key
from konverge.client import WriteEvent
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import kind_of
from konverge.reconcile import ActiveReconcile, EnqueueEvent, Journal, JournalObserver, Outcome, ReconcileEnd
from konverge.triggers.reasons import EnqueueReason

LAMP, BOX = Key("default", "lamp"), Key("default", "box")
RESPONSE = b'{"metadata":{"name":"box","resourceVersion":"8"}}'


def active() -> ActiveReconcile:
    return ActiveReconcile(controller="gadget", kind=kind_of(Gadget), key=LAMP, reconcile_id="7f", attempt=3)


async def test_the_facts_of_a_reconcile_are_in_its_entry() -> None:
    observer = JournalObserver(Journal())
    reason = EnqueueReason("owns ConfigMap", "ConfigMap", BOX, "7", "updated")
    observer.enqueue(EnqueueEvent("gadget", LAMP, reason, -2.0))
    reconcile = active()
    observer.begin(reconcile)
    observer.read(reconcile, "ConfigMap", BOX, "7")
    observer.write(reconcile, WriteEvent("apply", kind_of(ConfigMap), BOX, RESPONSE))
    observer.write(reconcile, WriteEvent("patch", kind_of(Gadget), LAMP, RESPONSE, subresource="status"))
    reconcile.warning = "hot loop"
    observer.end(reconcile, ReconcileEnd(Outcome.REQUEUE_AFTER, result="requeue after 5 s"))
    (entry,) = observer.journal.why(LAMP)
    assert (entry["reconcile_id"], entry["attempt"], entry["wait_seconds"]) == ("7f", 3, 2.0)
    assert [(one["trigger"], one["key"]) for one in entry["enqueued_by"]] == [("owns ConfigMap", "default/box")]
    assert entry["reads"] == [{"kind": "ConfigMap", "key": "default/box", "found": "7"}]
    assert entry["writes"] == [
        {"verb": "apply", "kind": "ConfigMap", "key": "default/box", "version": "8"},
        {"verb": "patch status", "kind": "Gadget", "key": "default/lamp", "version": "8"},
    ]
    assert (entry["result"], entry["error"], entry["warning"]) == ("requeue after 5 s", "", "hot loop")


async def test_a_failed_reconcile_has_its_error() -> None:
    observer, reconcile = JournalObserver(Journal()), active()
    observer.begin(reconcile)
    observer.end(reconcile, ReconcileEnd(Outcome.ERROR, error="ValueError: no such size"))
    (entry,) = observer.journal.why(LAMP)
    assert (entry["result"], entry["error"]) == ("error", "ValueError: no such size")


async def test_a_reconcile_whose_begin_was_not_recorded_has_no_entries() -> None:
    observer, reconcile = JournalObserver(Journal()), active()
    observer.read(reconcile, "ConfigMap", BOX, "7")
    observer.write(reconcile, WriteEvent("apply", kind_of(ConfigMap), BOX, RESPONSE))
    observer.end(reconcile, ReconcileEnd(Outcome.SUCCESS))
    assert observer.journal.why(LAMP) == []
