"""The response headers Retry-After and Warning.

Header names are lower case. An invalid header counts as absent; nothing here raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

__all__ = ["retry_after", "warning_texts"]

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_WARNING = re.compile(rf"\s*(\d{{3}}) +(\S+) +{_QUOTED}(?: +{_QUOTED})?\s*(?:,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SECONDS = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_MISCELLANEOUS = "299"
"""The only warn-code that API servers use; the others are about HTTP caches."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay of the Retry-After header in seconds, None without one.

    A date is compared with the server's `Date` header, so that the local clock does not matter.
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        seconds = float(value)
        return seconds if math.isfinite(seconds) else None
    then, now = _date(value), _date(headers.get("date", ""))
    return max(0.0, (then - now).total_seconds()) if then and now else None


def warning_texts(values: Iterable[str]) -> tuple[str, ...]:
    """Return the texts of `Warning` headers, unquoted, in order: "use apps/v1" for `299 - "use apps/v1"`."""
    return tuple(text for value in values for text in _texts(value) if text)


def _texts(value: str) -> Iterable[str]:
    position = 0
    while match := _WARNING.match(value, position):
        position = match.end()
        if match[1] == _MISCELLANEOUS:
            yield _ESCAPE.sub(r"\1", match[3]).strip()


def _date(value: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # rarely needed

    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # A date without a zone and one with a zone cannot be compared; HTTP dates are all in GMT.
    return date.replace(tzinfo=None) - (date.utcoffset() or date - date)
