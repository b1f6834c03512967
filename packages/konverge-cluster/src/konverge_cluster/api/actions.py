"""Shared parts of subresource actions: reading the body, and updating an object without the rules of its kind.

An action is a POST of a small kind to a subresource (a Binding, an Eviction). That kind is not stored.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON, YAML, BodyDecodeError, read_body, summary
from konverge_cluster.api.calls import Call
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.responses import Response, json_response
from konverge_cluster.api.strategy import Document, RequestContext

__all__ = ["UncheckedRules", "action_name", "read_action", "set_condition", "success_response"]


def read_action(call: Call, kind: str) -> Document:
    """Read the body of an action.

    Raises: StatusError 400.
    """
    content_type, body = call.request.headers.get("content-type", ""), call.request.body
    prefix = f"the object provided is unrecognized (must be of type {kind})"
    try:
        value, _ = read_body(content_type, body, (JSON, YAML, PROTOBUF))
    except BodyDecodeError as error:
        text = f"couldn't get version/kind; json parse error: {error}"
        raise status_errors.bad_request(f"{prefix}: {text} ({summary(body)})") from None
    if not isinstance(value, dict) or not isinstance(value.get("metadata") or {}, dict):
        raise status_errors.bad_request(f"{prefix} ({summary(body)})")
    kind_sent = value.get("kind") or kind
    if kind_sent != kind:
        version = value.get("apiVersion", "")
        text = f'no kind "{kind_sent}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise status_errors.bad_request(f'{kind_sent} in version "{version}" cannot be handled as a {kind}: {text}')
    return value


def action_name(action: Document, default: str = "") -> str:
    """Return the name in an action's own metadata: the object that the action is for."""
    return str((action.get("metadata") or {}).get("name", default))


def success_response() -> Response:
    """Return the response to an action that succeeded."""
    return json_response(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def set_condition(pod: Document, condition: Document, now: str) -> None:
    """Set a condition in a pod's status; replace one of the same type."""
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions", []) if each.get("type") != condition["type"]]
    status["conditions"] = [*others, {"lastProbeTime": None, "lastTransitionTime": now, **condition}]


class UncheckedRules:
    """Write rules for actions: nothing is prepared and nothing is validated."""

    reset_fields: tuple[str, ...] = ()

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:  # noqa: ARG002
        return None

    def validate_update(self, new: Any, old: Any, context: RequestContext) -> list[FieldError]:  # noqa: ARG002
        return []

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:  # noqa: ARG002
        return []
