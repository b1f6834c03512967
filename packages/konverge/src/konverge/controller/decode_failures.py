"""Decode failures: objects that the server stores and that do not decode into their class.

The schema may have been looser when such an object was written. One of them must not affect the others. The failure is
reported to the user: by an event, and by a condition on the object.
"""

from __future__ import annotations

from typing import Any

from konverge.cache import Lister
from konverge.errors import DecodeError, KonvergeError
from konverge.objects import Condition, Key, Unstructured, from_wire, set_condition, to_wire
from konverge.reconcile import ReconcileDependencies, Reference

__all__ = ["report_decode_failure"]

CONDITION = "Readable"
_REASON = "DecodeFailed"


async def report_decode_failure(
    dependencies: ReconcileDependencies, lister: Lister[Any], key: Key, error: DecodeError
) -> None:
    """Report that an object does not decode, once for each version of it. Does not raise API errors."""
    obj = lister.with_type(Unstructured).get(key)
    if obj is None:
        return
    if dependencies.recorder is not None:
        dependencies.recorder.record(
            Reference.of(obj), type="Warning", reason=_REASON, message=str(error), action="Reconcile"
        )
    try:
        await _set_condition(dependencies, lister, obj, error)
    except (KonvergeError, TypeError, ValueError):
        return  # the kind has no status, or the status does not decode either: the event is enough


async def _set_condition(
    dependencies: ReconcileDependencies, lister: Lister[Any], obj: Unstructured, error: DecodeError
) -> None:
    stored = (obj.get("status") or {}).get("conditions") or []
    conditions = [from_wire(Condition, one) for one in stored]
    generation = obj.metadata.get("generation")
    if set_condition(
        conditions, CONDITION, False, reason=_REASON, message=str(error)[:1024], observed_generation=generation
    ):
        patch = {
            "metadata": {"resourceVersion": obj.resource_version},
            "status": {"conditions": [to_wire(one) for one in conditions]},
        }
        await dependencies.client.patch(lister.kind, obj.key, patch, subresource="status")
