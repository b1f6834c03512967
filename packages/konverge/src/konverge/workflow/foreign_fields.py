"""The condition ForeignFields: fields of children that other managers set and that change what the children do.

A field that a component sets is its own again after the next reconcile. One that it does not set, such as a second
container or a node selector, would stay unnoticed. Reading the managers of the fields costs a request for each child,
so a child is read again only after a change.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

from konverge.objects import AnyObject, Key, Resource
from konverge.reconcile import Context, ForeignField
from konverge.workflow.statuses import WorkflowState

__all__ = ["ForeignFieldReport"]

Versions: TypeAlias = tuple[object, ...]

_SHOWN = 5
_ITEM = re.compile(r"\[(\w+)=[^]]*\]")
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


class ForeignFieldReport:
    """Sets the condition ForeignFields of objects from their children of some kinds."""

    def __init__(self, kinds: tuple[type[Resource], ...]) -> None:
        self._kinds = kinds
        self._written: dict[Key, Versions] = {}

    async def set_condition(self, obj: Any, ctx: Context, state: WorkflowState) -> Versions:
        """Set the condition if the children have changed since it was written; return the versions that it is about."""
        children = [child for one in state.states for child in one.objects if isinstance(child, self._kinds)]
        versions = (obj.metadata.generation, *((child.uid, _version_of(child)) for child in children))
        if not children or self._written.get(obj.key) == versions:
            return versions
        found = [name for child in children for name in _names(child, await ctx.foreign_fields(child))]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        reason, message = "ForeignFields" if found else "NoForeignFields", ", ".join(found[:_SHOWN]) + more
        ctx.condition(obj, "ForeignFields", bool(found), reason=reason, message=message)
        return versions

    def record_written(self, key: Key, versions: Versions) -> None:
        """Record that the status of an object has the condition for these versions."""
        self._written[key] = versions

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)


def _version_of(child: AnyObject) -> object:
    """Return what changes with the spec of a child: the generation, or the version of a kind that has none."""
    metadata: Any = child.metadata
    return metadata.generation or metadata.resource_version


def _names(child: AnyObject, fields: Collection[ForeignField]) -> list[str]:
    """Return kind, field and manager for each field that changes what a child does, without duplicates."""
    paths = {one.path: one.manager for one in fields if not one.shared and _changes_behavior(one.path)}
    shown = (f"{child.kind} {_shorten(path, paths)} by {manager}" for path, manager in paths.items())
    return list(dict.fromkeys(shown))


def _changes_behavior(path: str) -> bool:
    """Report whether a field is one of the spec, besides replicas, left to an autoscaler, and a restart by kubectl."""
    return path.startswith(".spec.") and path != ".spec.replicas" and _RESTARTED not in path


def _shorten(path: str, paths: Collection[str]) -> str:
    """Return the item of a list that a field belongs to, if another manager has added the item; otherwise the field."""
    return next((item for item, key in _items_of(path) if f"{item}.{key}" in paths), path)


def _items_of(path: str) -> Iterator[tuple[str, str]]:
    for match in _ITEM.finditer(path):
        yield path[: match.end()], match[1]
