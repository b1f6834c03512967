"""The mapper from orphans to the owners that may adopt them."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.cache import Entry, Event
from konverge.objects import Key, Model, ObjectMeta, field
from konverge_cluster.workloads.pods.selector_index import SelectorIndex

__all__ = ["to_matching_owners"]


class _Owned(Model):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def to_matching_owners(selectors: SelectorIndex, event: Event) -> Iterable[Key]:
    """Return the owners whose selector matches an orphan that is new, lost its controller or changed labels."""
    new, old = event.new, event.old
    if new is None or new.terminating or _is_controlled(new):
        return ()
    if old is not None and old.labels == new.labels and not _is_controlled(old):
        return ()
    labels = dict(zip(new.labels[::2], new.labels[1::2], strict=True))
    return selectors.matching(new.key.namespace, labels)


def _is_controlled(entry: Entry) -> bool:
    if not entry.owners:
        return False
    return any(reference.controller for reference in entry.read(_Owned).metadata.owner_references)
