"""The string formats that the API server checks, with the same checks here where they can be exact.

A format that needs a large parser (`uri`, `email`, card and book numbers) is left to the server: its entry is None. A
check that is only nearly right would reject values that the server accepts.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final, TypeAlias

__all__ = ["FORMATS", "has_format"]

Check: TypeAlias = Callable[[str], bool]

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_LOOSE_DURATION: Final = re.compile(r"[0-9]+\s*([A-Za-zµ]+)", re.ASCII)
_UNITS: Final = {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"}
_UNIT_STARTS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_MAC: Final = (
    r"[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5}|(?::[0-9a-fA-F]{2}){7}|(?::[0-9a-fA-F]{2}){19})"
    r"|[0-9a-fA-F]{2}(?:(?:-[0-9a-fA-F]{2}){5}|(?:-[0-9a-fA-F]{2}){7}|(?:-[0-9a-fA-F]{2}){19})"
    r"|[0-9a-fA-F]{4}(?:(?:\.[0-9a-fA-F]{4}){2}|(?:\.[0-9a-fA-F]{4}){3}|(?:\.[0-9a-fA-F]{4}){9})"
)


def has_format(name: str, text: str) -> bool:
    """Report whether the text has the format; a format that only the server checks always passes."""
    check = FORMATS.get(name)
    return check is None or check(text)


def _matching(pattern: str, max_length: int | None = None) -> Check:
    compiled = re.compile(pattern)

    def check(text: str) -> bool:
        return compiled.fullmatch(text) is not None and (max_length is None or len(text) <= max_length)

    return check


def _uuid(third: str = "[0-9a-f]{4}", fourth: str = "[0-9a-f]{4}") -> Check:
    return _matching(rf"(?i)[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}")


def _is_date(text: str) -> bool:
    if not _DAY.fullmatch(text):
        return False
    # Python has no year 0. The server has, and it is a leap year like 2000.
    year, rest = text[:4], text[4:]
    try:
        date.fromisoformat(("2000" if year == "0000" else year) + rest)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, _, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock.partition("t")[0])
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    words = (word.lower() for word in _LOOSE_DURATION.findall(text))
    return any(word in _UNITS or word.startswith(_UNIT_STARTS) for word in words)


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    if len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) > 0 for part in parts):
        return all(int(part) <= 255 for part in parts)
    return "." in text and _is_ipv6(_without_zeros(text))


def _without_zeros(address: str) -> str:
    """Drop the leading zeros in the dotted end of an IPv6 address: IPv4 and CIDR formats tolerate them."""
    head, colon, tail = address.rpartition(":")
    return head + colon + re.sub(r"(^|\.)0+(?=[0-9])", r"\1", tail) if "." in tail else address


def _is_ipv6(text: str) -> bool:
    if "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdigit()) or len(length) > 3:
        return False
    if _is_ipv6(_without_zeros(address)):
        return int(length) <= 128
    return ":" not in address and _is_ipv4(address) and int(length) <= 32


_SHORT_NAME: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

FORMATS: Final[Mapping[str, Check | None]] = {
    "bsonobjectid": _matching(r"[0-9a-fA-F]{24}"),
    "byte": _matching(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": None,
    "date": _is_date,
    "date-time": _is_date_time,
    "duration": _is_duration,
    "email": None,
    "hexcolor": _matching(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": None,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": None,
    "isbn10": None,
    "isbn13": None,
    "k8s-long-name": _matching(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*", max_length=253),
    "k8s-short-name": _matching(_SHORT_NAME, max_length=63),
    "mac": _matching(_MAC),
    "password": None,
    "rgbcolor": None,
    "ssn": _matching(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "uri": None,
    "uuid": _uuid(),
    "uuid3": _uuid("3[0-9a-f]{3}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}
"""Every format that the server checks, with the check; None if only the server can check it."""
