"""Misfits: objects that the server stores and our class cannot read.

The schema may have been looser when they were written. One such object must not disturb the others, and its owner must
learn of it where he looks: by an event, and by a condition on the object itself.
"""

from __future__ import annotations

from typing import Any

from konverge.cache import View
from konverge.errors import DecodeError, KonvergeError
from konverge.objects import Condition, Key, Unstructured, from_wire, set_condition, to_wire
from konverge.reconcile import Reference, Tools

__all__ = ["tell_misfit"]

CONDITION = "Readable"
_REASON = "DoesNotFitType"


async def tell_misfit(tools: Tools, view: View[Any], key: Key, problem: DecodeError) -> None:
    """Tell an object's owner that it cannot be read, once for each state of it. Never fails."""
    obj = view.reading(Unstructured).get(key)
    if obj is None:
        return
    if tools.recorder is not None:
        tools.recorder.record(
            Reference.of(obj), type="Warning", reason=_REASON, message=str(problem), action="Reconcile"
        )
    try:
        await _set_condition(tools, view, obj, problem)
    except (KonvergeError, TypeError, ValueError):
        return  # a kind without status, or one whose status is a misfit too: the event has said it


async def _set_condition(tools: Tools, view: View[Any], obj: Unstructured, problem: DecodeError) -> None:
    raw = (obj.get("status") or {}).get("conditions") or []
    conditions = [from_wire(Condition, one) for one in raw]
    generation = obj.metadata.get("generation")
    if set_condition(
        conditions, CONDITION, False, reason=_REASON, message=str(problem)[:1024], observed_generation=generation
    ):
        patch = {
            "metadata": {"resourceVersion": obj.resource_version},
            "status": {"conditions": [to_wire(one) for one in conditions]},
        }
        await tools.client.patch(view.kind, obj.key, patch, subresource="status")
