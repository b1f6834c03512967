"""API status errors: exceptions that carry the Status object of the response (apimachinery: StatusError).

Every layer of the API raises them; the server turns them into the response. The texts are exactly those of the real
server, since clients and tests match on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.objects.kinds import Kind
from konverge_cluster.api.field_errors import FieldError, quote

__all__ = [
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "failure",
    "forbidden",
    "internal_error",
    "invalid",
    "method_not_allowed",
    "modified",
    "name_not_generated",
    "no_such_resource",
    "not_acceptable",
    "not_found",
    "timeout",
    "too_large",
    "too_many_requests",
    "unsupported_media_type",
]


class StatusError(Exception):
    """A failed request: `status` is the Status document, `code` the HTTP code, `headers` extra response headers."""

    def __init__(self, status: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.code: int = status["code"]
        self.headers: dict[str, str] = dict(headers or {})

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))


def failure(code: int, message: str, reason: str = "", details: Mapping[str, Any] | None = None) -> StatusError:
    """Return a status error; without a reason or details the keys are omitted, as the real server does."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = {key: value for key, value in details.items() if value not in ("", None, [], 0)}
    status["code"] = code
    retry = (details or {}).get("retryAfterSeconds")
    return StatusError(status, {"retry-after": str(retry)} if retry else None)


def _resource(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str) -> dict[str, Any]:
    return {"name": name, "group": group, "kind": kind}


def not_found(group: str, plural: str, name: str) -> StatusError:
    message = f"{_resource(group, plural)} {quote(name)} not found"
    return failure(404, message, "NotFound", _details(group, plural, name))


def no_such_resource() -> StatusError:
    return failure(404, "the server could not find the requested resource", "NotFound", {})


def already_exists(group: str, plural: str, name: str, *, being_deleted: bool = False) -> StatusError:
    prefix = "object is being deleted: " if being_deleted else ""
    message = f"{prefix}{_resource(group, plural)} {quote(name)} already exists"
    return failure(409, message, "AlreadyExists", _details(group, plural, name))


def name_not_generated(kind: Kind, name: str) -> StatusError:
    text = "already exists, the server was not able to generate a unique name for the object"
    details = _details(kind.group, kind.plural, name) | {"retryAfterSeconds": 1}
    return failure(409, f"{kind.resource} {quote(name)} {text}", "AlreadyExists", details)


def conflict(group: str, plural: str, name: str, detail: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {_resource(group, plural)} {quote(name)}: {detail}"
    return failure(409, message, "Conflict", _details(group, plural, name))


def modified(group: str, plural: str, name: str) -> StatusError:
    detail = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(group, plural, name, detail)


def forbidden(
    group: str, plural: str, name: str, detail: str, *, causes: list[dict[str, str]] | None = None
) -> StatusError:
    subject = f"{_resource(group, plural)} {quote(name)}" if name else _resource(group, plural)
    details = _details(group, plural, name) | {"causes": causes}
    return failure(403, f"{subject} is forbidden: {detail}", "Forbidden", details)


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> StatusError:
    """Return a 422 error. Equal texts occur once in the message, and every time in the causes."""
    errors = list(errors)
    causes = [{"reason": error.reason, "message": error.body, "field": error.path} for error in errors]
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
    message = f"{_resource(group, kind)} {quote(name)} is invalid" + (f": {listed}" if listed else "")
    return failure(422, message, "Invalid", _details(group, kind, name) | {"causes": causes})


def bad_request(message: str) -> StatusError:
    return failure(400, message, "BadRequest")


def internal_error(detail: str) -> StatusError:
    return failure(500, f"Internal error occurred: {detail}", "InternalError", {"causes": [{"message": detail}]})


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return failure(405, message, "MethodNotAllowed", {})


def expired(message: str, *, token: str = "") -> StatusError:
    """Return a 410 error; `token` is a continue token for an inconsistent continuation."""
    error = failure(410, message, "Expired")
    if token:
        error.status["metadata"] = {"continue": token}
    return error


def timeout(message: str, *, causes: list[dict[str, str]] | None = None, retry_after: int = 0) -> StatusError:
    details = {"causes": causes, "retryAfterSeconds": retry_after}
    return failure(504, f"Timeout: {message}", "Timeout", details)


def too_large(message: str) -> StatusError:
    return failure(413, f"Request entity too large: {message}", "RequestEntityTooLarge")


def too_many_requests(message: str, *, causes: list[dict[str, str]] | None = None, retry_after: int = 0) -> StatusError:
    details = {"causes": causes, "retryAfterSeconds": retry_after}
    return failure(429, message, "TooManyRequests", details)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return failure(415, message, "UnsupportedMediaType")


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return failure(406, message, "NotAcceptable")
