"""Error responses: status code and body become an exception.

Rules:

1. There is an exception for every response, and building it never fails.
2. The message starts with the verb, kind and key of the request, and says what to do where that is known.
3. The HTTP status code decides the class; the reason only distinguishes the two kinds of 409, and replaces a missing
   code in a watch frame.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from konverge.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    Cause,
    Conflict,
    Expired,
    FieldConflict,
    Forbidden,
    Invalid,
    NotFound,
    RedirectError,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from konverge.wire.frames import Frame
from konverge.wire.headers import retry_after
from konverge.wire.statuses import Status, read_status, truncate

__all__ = ["error_from_frame", "error_from_response"]

_CLASSES: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    408: ServerError,  # a retry may succeed, as for a ServerError
    409: Conflict,
    410: Expired,
    413: Invalid,
    414: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
    431: Invalid,
}
_CODE_BY_REASON = {"Expired": 410, "Gone": 410}
_MAX_LISTED_CAUSES = 5

_MANAGER = re.compile(r'conflict with ("(?:[^"\\]|\\.)*")')
_MISSING_PERMISSION = re.compile(
    r'(?P<user>User "(?:[^"\\]|\\.)*") cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)"'
    r' in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?(?P<more>.*)',
    re.DOTALL,
)
_MISSING_PATH_PERMISSION = re.compile(r'(?P<user>User "(?:[^"\\]|\\.)*") cannot (?P<verb>\S+) path "(?P<path>[^"]*)"')


def error_from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, verb: str = "", kind: str = "", key: str = ""
) -> ApiError | TransportError:
    """Return the exception for a response whose status is not 2xx; `verb`, `kind` and `key` describe the request."""
    if status < 400:
        return _unexpected_status(status, headers, " ".join(filter(None, (verb, kind, key))))
    content = read_status(body, http_status=status)
    return _error(status, content, {"verb": verb, "kind": kind, "key": key}, retry_header=retry_after(headers))


def error_from_frame(frame: Frame, *, verb: str = "", kind: str = "", key: str = "") -> ApiError:
    """Return the exception for a watch frame of type ERROR."""
    content = read_status(bytes(frame.object))
    code = content.code if content.code >= 400 else _CODE_BY_REASON.get(content.reason, 500)
    return _error(code, content, {"verb": verb, "kind": kind, "key": key}, retry_header=None)


def _unexpected_status(status: int, headers: Mapping[str, str], request: str) -> TransportError:
    prefix = f"{request}: " if request else ""
    if not 300 <= status < 400:
        return TransportError(f"{prefix}unexpected status HTTP {status}")
    host = _host(headers.get("location", ""))
    target = f" to {host}" if host else ""
    return RedirectError(
        f"{prefix}redirects are not followed: HTTP {status}{target} (is the server URL the one of the API server?)"
    )


def _host(location: str) -> str:
    """Return only scheme and host of an address: the rest may contain a secret."""
    try:
        parts = urlsplit(location)
        host = parts.hostname
    except ValueError:
        return ""
    return truncate(f"{parts.scheme}://{host}" if host else parts.path)[:200]


def _error(code: int, content: Status, request: dict[str, str], *, retry_header: float | None) -> ApiError:
    facts: dict[str, Any] = {"status": code, "reason": content.reason, "causes": content.causes, **request}
    conflicts = _conflicts(content.causes)
    if code == 409 and conflicts:
        conflict = ApplyConflict(_describe_conflicts(conflicts), **facts)
        conflict.conflicts = conflicts
        return conflict
    if code == 409 and content.reason == "AlreadyExists":
        return AlreadyExists(content.message, **facts)
    if code == 403:
        return _forbidden(content.message, facts)
    error = _class(code)(_message(code, content), **facts)
    if isinstance(error, TooManyRequests | ServerError):
        error.retry_after = retry_header if retry_header is not None else content.retry_after
    return error


def _class(code: int) -> type[ApiError]:
    return _CLASSES.get(code, ServerError if code >= 500 else ApiError)


def _message(code: int, content: Status) -> str:
    fields = [cause for cause in content.causes if cause.field and cause.message]
    if code == 422 and fields:
        listed = "; ".join(cause.message + _field_suffix(cause) for cause in fields[:_MAX_LISTED_CAUSES])
        more = len(fields) - _MAX_LISTED_CAUSES
        return f"{listed}; and {more} more" if more > 0 else listed
    if code == 404 and _is_collection_missing(content):
        return "the server does not serve this resource (is its CRD installed, is the version right?)"
    if code == 401:
        return f"{content.message} (the server does not accept the credentials)"
    return content.message


def _is_collection_missing(content: Status) -> bool:
    if content.is_status:
        return content.message == "the server could not find the requested resource"
    return content.message == "404 page not found"


def _field_suffix(cause: Cause) -> str:
    # The server writes these in place of a path for an error about the whole object.
    return "" if cause.field in ("[]", "<nil>") else f", at {_wire_path(cause.field)}"


def _wire_path(field: str) -> str:
    return field if field.startswith((".", "[", "<")) else f".{field}"


def _conflicts(causes: Sequence[Cause]) -> tuple[FieldConflict, ...]:
    return tuple(
        FieldConflict(_manager(cause.message), _wire_path(cause.field))
        for cause in causes
        if cause.reason == "FieldManagerConflict"
    )


def _manager(message: str) -> str:
    match = _MANAGER.match(message)
    if match is None:
        return message
    try:
        return msgspec.json.decode(match[1], type=str)
    except msgspec.MsgspecError:
        return match[1][1:-1]


def _describe_conflicts(conflicts: Sequence[FieldConflict]) -> str:
    first, *others = conflicts[:_MAX_LISTED_CAUSES]
    owners = [f"{first.path} is owned by {first.manager!r}", *(f"{c.path} by {c.manager!r}" for c in others)]
    more = len(conflicts) - _MAX_LISTED_CAUSES
    listed = ", ".join(owners) + (f" and {more} more" if more > 0 else "")
    return f"{listed} (force=True takes {'it' if len(conflicts) == 1 else 'them'})"


def _forbidden(message: str, facts: dict[str, Any]) -> Forbidden:
    text, needs = message, ""
    if permission := _MISSING_PERMISSION.search(message):
        needs = f"{permission['verb']} on {_rbac_name(permission['resource'], permission['group'])}"
        namespace = f" in namespace {permission['namespace']}" if permission["namespace"] else ""
        text = f"{permission['user']} may not{permission['more']} (needs {needs}{namespace})"
    elif path := _MISSING_PATH_PERMISSION.search(message):
        needs = f"{path['verb']} on path {path['path']}"
        text = f"{path['user']} may not (needs {needs})"
    error = Forbidden(text, **facts)
    error.needs = needs
    return error


def _rbac_name(resource: str, group: str) -> str:
    """Return the name that `kubectl auth can-i` takes: `deployments.apps/status`."""
    plural, slash, subresource = resource.partition("/")
    return f"{plural}{f'.{group}' if group else ''}{slash}{subresource}"
