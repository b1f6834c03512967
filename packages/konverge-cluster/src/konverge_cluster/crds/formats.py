"""Formats of strings and numbers that the server checks; all others are ignored.

Most checks are in `konverge.schema.formats`. This module has those that need a parser of their own: request URIs, mail
addresses, host names, card and book numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from konverge.schema.formats import FORMATS, has_format

__all__ = ["effective_format", "matches_format", "unrecognized_format"]

_NUMERIC: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}
_NAMES: Final = {name.replace("-", ""): name for name in FORMATS}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HOST_BAD: Final = re.compile(r"[ \"<>\\^`{|}]")
_PORT: Final = re.compile(r":[0-9]*")
_USERINFO_BAD: Final = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
_ATOM: Final = r"[^\x00-\x20\x7f()<>\[\]:;@\\,.\"]"
_LOCAL: Final = re.compile(rf"{_ATOM}+(?:\.{_ATOM}+)*|\"(?:[^\"\\\r\n\x00-\x08\x0a-\x1f]|\\.)*\"")
_DOMAIN: Final = re.compile(rf"{_ATOM}+(?:\.{_ATOM}+)*")
_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR_PART: Final = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_RGB: Final = re.compile(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)")


def effective_format(schema: Mapping[str, Any]) -> str:
    """Return the format of a schema that is checked: "" if its type does not have that format."""
    name = schema.get("format", "")
    return "" if unrecognized_format(schema) else str(name)


def unrecognized_format(schema: Mapping[str, Any]) -> bool:
    """Report whether a schema has a format that the server ignores with a warning."""
    name = schema.get("format", "")
    if not name:
        return False
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if kind in ("", "string"):
        return name.replace("-", "") not in _NAMES
    return name not in _NUMERIC.get(kind, ())


def matches_format(name: str, text: str) -> bool:
    """Report whether a string matches a format that the server checks."""
    format_name = _NAMES[name.replace("-", "")]
    own = _OWN.get(format_name)
    return own(text) if own is not None else has_format(format_name, text)


def _is_request_uri(text: str) -> bool:
    if not text or _CONTROL.search(text):
        return False
    if text == "*":
        return True
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1], match[2]) if match else ("", text)
    if not scheme and (text.startswith(":") or ":" in text.partition("/")[0]):
        return False
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        # With a scheme it is opaque, such as mailto:; without one it is relative.
        return bool(scheme)
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        if not _is_authority(authority):
            return False
        rest = slash + path
    return not _BAD_ESCAPE.search(rest)


def _is_authority(text: str) -> bool:
    user, at, host = text.rpartition("@")
    if at and (_USERINFO_BAD.search(user) or _BAD_ESCAPE.search(user)):
        return False
    if host.startswith("["):
        end = host.rfind("]")
        return end > 0 and _is_port(host[end + 1 :])
    name, colon, port = host.rpartition(":")
    if colon and not _is_port(colon + port):
        return False
    name = name if colon else host
    # In a host only non-ASCII bytes may be escaped.
    escapes = re.findall("%(..)", name)
    return not (_HOST_BAD.search(name) or _BAD_ESCAPE.search(name) or any(int(each, 16) < 0x80 for each in escapes))


def _is_port(text: str) -> bool:
    return text == "" or _PORT.fullmatch(text) is not None


def _is_email(text: str) -> bool:
    text = text.strip(" \t")
    if text.endswith(">"):
        name, bracket, address = text[:-1].partition("<")
        return bool(bracket) and _is_phrase(name.strip(" \t")) and _is_address(address)
    return _is_address(text)


def _is_phrase(text: str) -> bool:
    if not text:
        return True
    words = re.findall(r'"(?:[^"\\]|\\.)*"|[^ \t]+', text)
    return all(word.startswith('"') or _LOCAL.fullmatch(word) for word in words)


def _is_address(text: str) -> bool:
    match = _LOCAL.match(text)
    if match is None:
        return False
    rest = text[match.end() :].lstrip(" \t")
    return rest.startswith("@") and _DOMAIN.fullmatch(rest[1:].strip(" \t")) is not None


def _is_hostname(text: str) -> bool:
    if len(text.encode("utf-8", "surrogatepass")) > 255:
        return False
    if any(len(part.encode("utf-8", "surrogatepass")) > 63 for part in text.split(".")):
        return False
    *labels, last = text.split(".")
    if not labels:
        return _is_single_host(last)
    return all(map(_is_host_label, labels)) and len(last) >= 2 and all(map(_is_letter, last))


def _is_letter(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or unicodedata.category(char).startswith("L")


def _is_symbol(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or unicodedata.category(char)[0] in "SL"


def _is_host_label(text: str) -> bool:
    inner = all(char == "-" or _is_symbol(char) for char in text[1:-1])
    return bool(text) and _is_symbol(text[0]) and _is_symbol(text[-1]) and inner


def _is_single_host(text: str) -> bool:
    """Report whether a text is a name without dots: at most one dash, right after the first character."""
    rest = text[2:] if text[1:2] == "-" else text[1:]
    return bool(text) and _is_symbol(text[0]) and len(rest) <= 62 and all(map(_is_symbol, rest))


def _is_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(int(digit) for digit in digits[::-2])) % 10 == 0


def _book_digits(text: str) -> str:
    return re.sub(r"[\t\n\f\r -]+", "", text)


def _is_isbn10(text: str) -> bool:
    digits = _book_digits(text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    return sum((at + 1) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _book_digits(text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum((3 if at % 2 else 1) * int(digit) for at, digit in enumerate(digits)) % 10 == 0


_OWN: Final[dict[str, Callable[[str], bool]]] = {
    "uri": _is_request_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "creditcard": _is_card,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "rgbcolor": lambda text: _RGB.fullmatch(text) is not None,
}
