"""What an answer says when it is no: a Status object, or whatever stands in its place.

Most refusals are Status objects. Some are plain text (a path that no API server knows), HTML of a proxy in between, or
nothing at all. All of them are read here, tolerantly: a field that has the wrong type counts as absent. Texts are cut
to a length that fits into a log line, and what the server repeats in them of the object itself, a Secret perhaps, is
left out.
"""

from __future__ import annotations

import http
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from konverge.errors import Cause

__all__ = ["MAX_TEXT", "Status", "read_status", "shorten"]

MAX_TEXT = 4096
"""A message is cut after this many characters."""

_MAX_STATUS_BYTES = 4 * 1024 * 1024
_MAX_CAUSES = 1000
_MAX_SECONDS = 10**9
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# A patch that leads to no readable object comes back whole, and with it the object that it was made for.
_REPEATED_OBJECT = re.compile(r'(\bpatch: |^)(Invalid value: )"(?:[^"\\]|\\.)*": ', re.DOTALL)
# An apply of the wrong type gets its value back in Go's notation; it may hold line ends, so nothing after it is safe.
_REPEATED_VALUE = re.compile(r", got &.*", re.DOTALL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal as the server words it. `code` is 0, `retry_after` None and a text "" when it does not say.

    `spoken` is False when the answer is not a Status object: then `message` describes what came instead.
    """

    message: str
    reason: str = ""
    code: int = 0
    causes: tuple[Cause, ...] = ()
    retry_after: float | None = None
    spoken: bool = True


def read_status(body: bytes, *, http_status: int = 0) -> Status:
    """Read the body of a refusal, whatever it is."""
    document = _document(body)
    if document.get("kind") != "Status":
        return Status(_describe(body, http_status), spoken=False)
    details = _as(dict, document.get("details"), {})
    reason = _as(str, document.get("reason"), "")
    return Status(
        message=_safe(_as(str, document.get("message"), ""), "") or reason or _phrase(http_status),
        reason=reason,
        code=_as(int, document.get("code"), 0),
        causes=_causes(details),
        retry_after=_seconds(details.get("retryAfterSeconds")),
    )


def shorten(text: str) -> str:
    """Cut a text that is too long to show, and drop characters that would garble a terminal."""
    shown = _UNPRINTABLE.sub(" ", text[: MAX_TEXT + 1])
    return shown if len(shown) <= MAX_TEXT else shown[:MAX_TEXT] + "..."


def _safe(message: str, field: str) -> str:
    """Leave out what a message repeats of the object, and shorten the rest."""
    if field in ("", "patch"):
        message = _REPEATED_OBJECT.sub(r"\1\2", message, count=1)
    return shorten(_REPEATED_VALUE.sub("", message))


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
        return f"{_phrase(http_status)}, without a word of explanation"
    text = body[: 4 * MAX_TEXT].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        named = f" titled {' '.join(title[1].split())[:200]!r}" if title else ""
        return f"{_phrase(http_status)}, and an HTML page{named} instead of a Status (is there a proxy in between?)"
    if text.startswith(("{", "[")):
        return f"{_phrase(http_status)}, and {len(body)} bytes of JSON that are no Status"
    if "\0" in text or text.count("\ufffd") > len(text) // 8:
        return f"{_phrase(http_status)}, and {len(body)} bytes that are no text"
    return " ".join(shorten(text)[:500].split())


def _phrase(http_status: int) -> str:
    try:
        return f"HTTP {http_status} {http.HTTPStatus(http_status).phrase}"
    except ValueError:
        return f"HTTP {http_status}" if http_status else "the server failed"
