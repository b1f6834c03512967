"""The body of an error response: a Status object, or what the server sent in its place.

Most bodies are Status objects. Some are plain text (a path that the API server does not serve), HTML of a proxy, or
empty. The parser is tolerant: a field of the wrong type counts as absent. Messages are truncated to a length for logs,
and parts of the object that the server quotes, perhaps of a Secret, are removed.
"""

from __future__ import annotations

import http
import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from konverge.errors import Cause

__all__ = ["MAX_TEXT", "Status", "read_status", "truncate"]

MAX_TEXT = 4096
"""A message is truncated after this many characters."""

_MAX_STATUS_BYTES = 4 * 1024 * 1024
_MAX_CAUSES = 1000
_MAX_SECONDS = 10**9
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# The message about an invalid patch result contains the whole patched object.
_QUOTED_OBJECT = re.compile(r'(\bpatch: |^)(Invalid value: )"(?:[^"\\]|\\.)*": ', re.DOTALL)
# The message about an apply of the wrong type contains its value in Go's notation, which may span several lines.
_QUOTED_VALUE = re.compile(r", got &.*", re.DOTALL)

T = TypeVar("T")


class Status(Struct, frozen=True):
    """The content of an error response. A missing `code` is 0, a missing `retry_after` None, a missing text "".

    `is_status` is False if the body is not a Status object: `message` then describes the body.
    """

    message: str
    reason: str = ""
    code: int = 0
    causes: tuple[Cause, ...] = ()
    retry_after: float | None = None
    is_status: bool = True


def read_status(body: bytes, *, http_status: int = 0) -> Status:
    """Parse the body of an error response, whatever it is."""
    document = _document(body)
    if document.get("kind") != "Status":
        return Status(_describe(body, http_status), is_status=False)
    details = _as(dict, document.get("details"), {})
    reason = _as(str, document.get("reason"), "")
    return Status(
        message=_safe(_as(str, document.get("message"), ""), "") or reason or _phrase(http_status),
        reason=reason,
        code=_as(int, document.get("code"), 0),
        causes=_causes(details),
        retry_after=_seconds(details.get("retryAfterSeconds")),
    )


def truncate(text: str) -> str:
    """Return the text truncated to MAX_TEXT, without control characters."""
    printable = _UNPRINTABLE.sub(" ", text[: MAX_TEXT + 1])
    return printable if len(printable) <= MAX_TEXT else printable[:MAX_TEXT] + "..."


def _safe(message: str, field: str) -> str:
    """Remove the parts of the object that a message quotes, and truncate the rest."""
    if field in ("", "patch"):
        message = _QUOTED_OBJECT.sub(r"\1\2", message, count=1)
    return truncate(_QUOTED_VALUE.sub("", message))


def _document(body: bytes) -> dict[str, Any]:
    if len(body) > _MAX_STATUS_BYTES:
        return {}
    try:
        return _as(dict, msgspec.json.decode(body), {})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _causes(details: dict[str, Any]) -> tuple[Cause, ...]:
    found = _as(list, details.get("causes"), [])[:_MAX_CAUSES]
    return tuple(
        Cause(
            field=_as(str, cause.get("field"), ""),
            reason=_as(str, cause.get("reason"), ""),
            message=_safe(_as(str, cause.get("message"), ""), _as(str, cause.get("field"), "")),
        )
        for cause in found
        if isinstance(cause, dict)
    )


def _seconds(value: Any) -> float | None:
    seconds = min(_as(int, value, 0), _MAX_SECONDS)
    return float(seconds) if seconds > 0 else None


def _as(type_: type[T], value: Any, default: T) -> T:
    return value if isinstance(value, type_) and not isinstance(value, bool) else default


def _describe(body: bytes, http_status: int) -> str:
    if not body.strip():
        return f"{_phrase(http_status)}, with an empty body"
    text = body[: 4 * MAX_TEXT].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        titled = f" titled {' '.join(title[1].split())[:200]!r}" if title else ""
        return f"{_phrase(http_status)}, with an HTML page{titled} instead of a Status (is there a proxy in between?)"
    if text.startswith(("{", "[")):
        return f"{_phrase(http_status)}, with {len(body)} bytes of JSON that are not a Status"
    if "\0" in text or text.count("\ufffd") > len(text) // 8:
        return f"{_phrase(http_status)}, with {len(body)} bytes that are not text"
    return " ".join(truncate(text)[:500].split())


def _phrase(http_status: int) -> str:
    try:
        return f"HTTP {http_status} {http.HTTPStatus(http_status).phrase}"
    except ValueError:
        return f"HTTP {http_status}" if http_status else "the server failed"
