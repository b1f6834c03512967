"""Edits by other clients, at the moments that a schedule chooses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final

import msgspec

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.objects import Unstructured
from konverge_cluster.storage import Entry
from konverge_cluster.testing.simulation.audits import Audit, Target

__all__ = ["ANNOTATION", "ForeignClient"]

ANNOTATION: Final = "simulation.konverge.dev/touched"
_ASSIGNED: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences")


class ForeignClient:
    """Another client of the cluster. An edit that the server refuses did not happen."""

    def __init__(self, client: Client, audit: Audit, seed: int) -> None:
        self._client = client.using(field_manager="somebody-else").without_warnings()
        self._audit = audit
        self._random = Random(seed)
        self._edits = 0

    async def touch(self, target: Target) -> None:
        """Write the object without changing what anybody set: its resource version increases."""
        if target.entry(self._audit.storage) is not None:
            await self._patch(target, {"metadata": {"annotations": {ANNOTATION: self._next()}}})

    async def edit_applied(self) -> bool:
        """Change a field of an object that the operator applies; report whether there is one."""
        choices = [
            (target, path, value)
            for target, document in self._audit.applied.items()
            if (entry := target.entry(self._audit.storage)) is not None and _is_free(entry)
            for path, value in _editable(document)
        ]
        if not choices:
            return False
        target, path, value = self._random.choice(choices)
        other: Any = value + 1 if isinstance(value, int) else f"{value}-{self._next()}"
        for name in reversed(path):
            other = {name: other}
        return await self._patch(target, other)

    async def delete_applied(self) -> list[str]:
        """Delete an object that the operator applies; return its name, and those of all that goes with a namespace."""
        storage = self._audit.storage
        found = [one for one in self._audit.applied if (entry := one.entry(storage)) is not None and _is_free(entry)]
        own = [one for one in found if (entry := one.entry(storage)) and entry.uid in self._audit.creators]
        if not own:
            return []
        target = self._random.choice(own)
        contents = self._audit.names_in(target.name) if target.kind == "namespaces" else []
        await self._delete(target)
        return [str(target), *contents]

    async def replace(self, target: Target) -> str:
        """Replace the object by another one with the same name; return its uid, "" when that is not possible."""
        entry = target.entry(self._audit.storage)
        if entry is None or not _is_free(entry):
            return ""
        found = await self._client.get(target.kind, target.name, namespace=target.namespace or None)
        await self._delete(target, grace_period=0)
        with suppress(KonvergeError):
            return (await self._client.create(_copy_of(found))).uid
        return ""

    async def remove(self, target: Target, uid: str) -> bool:
        """Remove the replacement; report whether it still existed."""
        entry = target.entry(self._audit.storage)
        if entry is None or entry.uid != uid or not _is_free(entry):
            return False
        await self._delete(target, grace_period=0)
        return True

    async def _delete(self, target: Target, *, grace_period: int | None = None) -> None:
        await self._client.delete(
            target.kind,
            target.name,
            namespace=target.namespace or None,
            propagation="Background",
            grace_period=grace_period,
        )

    async def _patch(self, target: Target, patch: Mapping[str, Any]) -> bool:
        with suppress(KonvergeError):
            await self._client.patch(target.kind, target.name, dict(patch), namespace=target.namespace or None)
            return True
        return False

    def _next(self) -> str:
        self._edits += 1
        return str(self._edits)


def _is_free(entry: Entry) -> bool:
    """Report whether an object is not being deleted, and has no finalizer."""
    metadata = msgspec.json.decode(entry.raw)["metadata"]
    return not metadata.get("finalizers") and not metadata.get("deletionTimestamp")


def _copy_of(found: Unstructured) -> Unstructured:
    """Return an object with the same content and no owner."""
    document = copy.deepcopy(dict(found))
    document.pop("status", None)
    for name in _ASSIGNED:
        document["metadata"].pop(name, None)
    for name in ("clusterIP", "clusterIPs"):
        (document.get("spec") or {}).pop(name, None)
    return Unstructured(document)


def _editable(document: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str | int]]:
    """Return paths and values of the fields that another client may set to any value: data, labels, replicas."""
    found: list[tuple[tuple[str, ...], str | int]] = []
    for parent in (("data",), ("metadata", "labels"), ("metadata", "annotations")):
        values: Any = document
        for name in parent:
            values = values.get(name) or {}
        found += [((*parent, key), value) for key, value in values.items() if isinstance(value, str)]
    replicas = (document.get("spec") or {}).get("replicas")
    if isinstance(replicas, int):
        found.append((("spec", "replicas"), replicas))
    return found
