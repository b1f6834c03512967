"""What the server's no means: status code and body become the error that a caller handles.

Rules that hold here:

1. Whatever came, there is an error for it, and making it never fails.
2. The message starts with what the caller asked, in the caller's words, and says what to do where that is known.
3. The HTTP code decides the class; the reason only tells the two 409s apart, and stands in for a code in a watch frame.
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
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from konverge.wire.frames import Frame
from konverge.wire.headers import retry_after
from konverge.wire.statuses import Status, read_status, shorten

__all__ = ["error_of", "error_of_frame"]

_CLASSES: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    408: ServerError,  # a repeat may work, and that is what a caller does about a ServerError
    409: Conflict,
    410: Expired,
    413: Invalid,
    414: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
    431: Invalid,
}
_CODES_OF_REASONS = {"Expired": 410, "Gone": 410}
_SHOWN_CAUSES = 5

_MANAGER = re.compile(r'conflict with ("(?:[^"\\]|\\.)*")')
_MISSING_RIGHT = re.compile(
    r'(?P<user>User "(?:[^"\\]|\\.)*") cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)"'
    r' in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?(?P<more>.*)',
    re.DOTALL,
)
_MISSING_PATH_RIGHT = re.compile(r'(?P<user>User "(?:[^"\\]|\\.)*") cannot (?P<verb>\S+) path "(?P<path>[^"]*)"')


def error_of(
    status: int, headers: Mapping[str, str], body: bytes, *, verb: str = "", kind: str = "", key: str = ""
) -> ApiError | TransportError:
    """Make the error for an answer whose status is not 2xx; `verb`, `kind` and `key` say what was asked."""
    if status < 400:
        return _no_answer(status, headers, " ".join(filter(None, (verb, kind, key))))
    said = read_status(body, http_status=status)
    return _error(status, said, {"verb": verb, "kind": kind, "key": key}, wish=retry_after(headers))


def error_of_frame(frame: Frame, *, verb: str = "", kind: str = "", key: str = "") -> ApiError:
    """Make the error for a watch frame of type ERROR."""
    said = read_status(bytes(frame.object))
    code = said.code if said.code >= 400 else _CODES_OF_REASONS.get(said.reason, 500)
    return _error(code, said, {"verb": verb, "kind": kind, "key": key}, wish=None)


def _no_answer(status: int, headers: Mapping[str, str], asked: str) -> TransportError:
    front = f"{asked}: " if asked else ""
    if not 300 <= status < 400:
        return TransportError(f"{front}HTTP {status} is no answer to this request")
    place = _place(headers.get("location", ""))
    where = f" to {place}" if place else ""
    return TransportError(f"{front}redirect refused: HTTP {status}{where} (is the server URL that of the API server?)")


def _place(location: str) -> str:
    """Give only scheme and host of an address: the rest may hold a secret."""
    try:
        parts = urlsplit(location)
        host = parts.hostname
    except ValueError:
        return ""
    return shorten(f"{parts.scheme}://{host}" if host else parts.path)[:200]


def _error(code: int, said: Status, asked: dict[str, str], *, wish: float | None) -> ApiError:
    facts: dict[str, Any] = {"status": code, "reason": said.reason, "causes": said.causes, **asked}
    conflicts = _conflicts(said.causes)
    if code == 409 and conflicts:
        conflict = ApplyConflict(_owned(conflicts), **facts)
        conflict.conflicts = conflicts
        return conflict
    if code == 409 and said.reason == "AlreadyExists":
        return AlreadyExists(said.message, **facts)
    if code == 403:
        return _forbidden(said.message, facts)
    error = _class(code)(_message(code, said), **facts)
    if isinstance(error, TooManyRequests | ServerError):
        error.retry_after = wish if wish is not None else said.retry_after
    return error


def _class(code: int) -> type[ApiError]:
    return _CLASSES.get(code, ServerError if code >= 500 else ApiError)


def _message(code: int, said: Status) -> str:
    fields = [cause for cause in said.causes if cause.field and cause.message]
    if code == 422 and fields:
        shown = "; ".join(cause.message + _place_of(cause) for cause in fields[:_SHOWN_CAUSES])
        more = len(fields) - _SHOWN_CAUSES
        return f"{shown}; and {more} more" if more > 0 else shown
    if code == 404 and _collection_is_missing(said):
        return "the server does not serve this resource (is its CRD installed, is the version right?)"
    if code == 401:
        return f"{said.message} (the server does not accept the credentials)"
    return said.message


def _collection_is_missing(said: Status) -> bool:
    if said.spoken:
        return said.message == "the server could not find the requested resource"
    return said.message == "404 page not found"


def _place_of(cause: Cause) -> str:
    # An error about the whole object has no path: the server writes one all the same.
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
    found = _MANAGER.match(message)
    if found is None:
        return message
    try:
        return msgspec.json.decode(found[1], type=str)
    except msgspec.MsgspecError:
        return found[1][1:-1]


def _owned(conflicts: Sequence[FieldConflict]) -> str:
    first, *others = conflicts[:_SHOWN_CAUSES]
    words = [f"{first.path} is owned by {first.manager!r}", *(f"{c.path} by {c.manager!r}" for c in others)]
    more = len(conflicts) - _SHOWN_CAUSES
    listed = ", ".join(words) + (f" and {more} more" if more > 0 else "")
    return f"{listed} (force=True takes {'it' if len(conflicts) == 1 else 'them'})"


def _forbidden(message: str, facts: dict[str, Any]) -> Forbidden:
    text, needs = message, ""
    if right := _MISSING_RIGHT.search(message):
        needs = f"{right['verb']} on {_rbac_name(right['resource'], right['group'])}"
        where = f" in namespace {right['namespace']}" if right["namespace"] else ""
        text = f"{right['user']} may not{right['more']} (needs {needs}{where})"
    elif path := _MISSING_PATH_RIGHT.search(message):
        needs = f"{path['verb']} on path {path['path']}"
        text = f"{path['user']} may not (needs {needs})"
    error = Forbidden(text, **facts)
    error.needs = needs
    return error


def _rbac_name(resource: str, group: str) -> str:
    """Give the name that `kubectl auth can-i` takes: `deployments.apps/status`."""
    plural, slash, subresource = resource.partition("/")
    return f"{plural}{f'.{group}' if group else ''}{slash}{subresource}"
