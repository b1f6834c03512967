"""Reconcile histories, for `Manager.why`, /debug/why and `konverge why`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.controller import RunningController
from konverge.objects import Key

__all__ = ["find_histories", "find_history"]

_MAX_KEYS = 1000


def find_history(controllers: Iterable[RunningController[Any]], name: str, key: Key) -> list[dict[str, Any]] | None:
    """Return the reconcile history of a key; None when there is no controller of this name."""
    for running in controllers:
        if running.controller.name == name:
            return running.journal.why(key)
    return None


def find_histories(controllers: Iterable[RunningController[Any]], name: str, key: Key | None, *, namespace: str) -> Any:
    """Return the history of a key, or without a key the keys that have one, by controller; None for nothing.

    `name` is the name or the kind of a controller in any case, or "" for all of them. Without a namespace, a key of a
    namespaced kind is in `namespace`.
    """
    named = name.lower()
    found = [one for one in controllers if named in ("", one.controller.name.lower(), _kind_name(one))]
    if key is None:
        return {one.controller.name: _journal_keys(one) for one in found} if found or not named else None
    for one in found:
        in_namespace = key.namespace or (namespace if one.controller.kind.namespaced else "")
        if history := one.journal.why(Key(in_namespace, key.name)):
            return history
    return None


def _kind_name(running: RunningController[Any]) -> str:
    return running.controller.kind.kind.lower()


def _journal_keys(running: RunningController[Any]) -> list[str]:
    return [str(key) for key in running.journal.list_keys()[:_MAX_KEYS]]
