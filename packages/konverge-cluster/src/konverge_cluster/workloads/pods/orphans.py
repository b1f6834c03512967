"""From an object that nobody controls to those who may want it."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.cache import Entry, Event
from konverge.objects import Key, Model, ObjectMeta, field
from konverge_cluster.workloads.pods.selections import Selections

__all__ = ["wanted_by"]


class _Owned(Model):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def wanted_by(selections: Selections, event: Event) -> Iterable[Key]:
    """Give the owners that select an object which came without a controller, or lost it, or changed its labels."""
    new, old = event.new, event.old
    if new is None or new.deleting or _is_controlled(new):
        return ()
    if old is not None and old.labels == new.labels and not _is_controlled(old):
        return ()
    labels = dict(zip(new.labels[::2], new.labels[1::2], strict=True))
    return selections.selecting(new.key.namespace, labels)


def _is_controlled(entry: Entry) -> bool:
    if not entry.owners:
        return False
    return any(reference.controller for reference in entry.read(_Owned).metadata.owner_references)
