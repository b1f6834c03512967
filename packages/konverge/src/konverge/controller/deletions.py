"""Errors of a reconcile that follow from a deletion: objects are deleted while a reconcile writes."""

from __future__ import annotations

from typing import Final

from konverge.errors import ApiError, NotFound
from konverge.objects import Key

__all__ = ["is_deletion_error"]

_TERMINATING: Final = "NamespaceTerminating"


def is_deletion_error(error: BaseException, kind: str, key: Key) -> bool:
    """Report whether a reconcile of an object failed because the object, or its namespace, is being deleted.

    These are: the object itself is not found; a create in its namespace failed because the namespace is gone or is
    being terminated. The informer delivers the deletion soon.
    """
    if not isinstance(error, ApiError):
        return False
    if isinstance(error, NotFound) and (error.kind, error.key) == (kind, str(key)):
        return True
    same_namespace = bool(key.namespace) and error.key.partition("/")[0] == key.namespace
    if not same_namespace or not error.verb.startswith("create"):
        return False
    return isinstance(error, NotFound) or any(cause.reason == _TERMINATING for cause in error.causes)
