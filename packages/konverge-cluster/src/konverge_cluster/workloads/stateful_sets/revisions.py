"""Revisions of a StatefulSet: a ControllerRevision for each pod template, numbered in the order of their use.

The data of a revision is a strategic merge patch that replaces the template, so `kubectl rollout undo` applies it. A
template that is used again gets its old revision back, with the next number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from konverge.k8s.apps.v1 import ControllerRevision, StatefulSet
from konverge.k8s.core.v1 import PodTemplateSpec
from konverge.objects import ObjectMeta, from_wire, to_wire
from konverge_cluster.workloads.pods.claims import owner_reference
from konverge_cluster.workloads.pods.hashes import name_hash

__all__ = [
    "HASH",
    "Revisions",
    "by_number",
    "current_revision",
    "equal_revision",
    "new_revision",
    "next_number",
    "revision_data",
    "revisions_to_delete",
    "template_of",
]

HASH: Final = "controller.kubernetes.io/hash"
_MAX_PREFIX: Final = 223


@dataclass(frozen=True)
class Revisions:
    """The revision that pods are updated from, the one that they are updated to, and the collisions of names."""

    current: ControllerRevision
    update: ControllerRevision
    collisions: int


def revision_data(template: PodTemplateSpec) -> dict[str, Any]:
    """Return the patch that restores a template."""
    return {"spec": {"template": {**to_wire(template), "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """Return the template that a revision restores."""
    data = revision.data or {}
    template = {name: value for name, value in data["spec"]["template"].items() if name != "$patch"}
    return from_wire(PodTemplateSpec, template)


def new_revision(stateful_set: StatefulSet, number: int, collisions: int) -> ControllerRevision:
    """Return a new revision of the current template; its name depends on the template and the collisions."""
    data = revision_data(stateful_set.spec.template)
    hash_ = name_hash([data, collisions])
    labels = stateful_set.spec.template.metadata.labels if stateful_set.spec.template.metadata is not None else {}
    metadata = ObjectMeta(
        name=f"{stateful_set.name[:_MAX_PREFIX]}-{hash_}",
        namespace=stateful_set.namespace,
        labels={**labels, HASH: hash_},
        annotations=dict(stateful_set.metadata.annotations),
        owner_references=[owner_reference(stateful_set)],
    )
    return ControllerRevision(metadata=metadata, data=data, revision=number)


def by_number(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Return revisions in the order of their numbers, then of their creation."""
    return sorted(revisions, key=lambda one: (one.revision, str(one.metadata.creation_timestamp), one.name))


def next_number(revisions: Sequence[ControllerRevision]) -> int:
    """Return the number of the next revision."""
    return revisions[-1].revision + 1 if revisions else 1


def equal_revision(revisions: Sequence[ControllerRevision], data: dict[str, Any]) -> ControllerRevision | None:
    """Return the latest revision with this data."""
    return next((one for one in reversed(revisions) if one.data == data), None)


def current_revision(
    stateful_set: StatefulSet, revisions: Iterable[ControllerRevision], update: ControllerRevision
) -> ControllerRevision:
    """Return the revision that the status names as current; the update revision if it does not exist."""
    name = stateful_set.status.current_revision
    return next((one for one in revisions if one.name == name), update)


def revisions_to_delete(
    stateful_set: StatefulSet, revisions: Sequence[ControllerRevision], in_use: set[str]
) -> list[ControllerRevision]:
    """Return the oldest revisions beyond the history limit; those in use neither count nor are removed."""
    limit = stateful_set.spec.revision_history_limit
    unused = [one for one in revisions if one.name not in in_use]
    if limit is None or limit < 0:
        return []
    return unused[: max(len(unused) - limit, 0)]
