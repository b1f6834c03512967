"""Types of the Kubernetes libraries: URLs, quantities, named formats. `addresses` and `semver` have the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from konverge.objects.names import (
    dns_label_errors,
    dns_subdomain_errors,
    label_key_errors,
    label_value_errors,
    rfc1035_label_errors,
)
from konverge.objects.quantities import Quantity
from konverge.schema.formats import has_format
from konverge_cluster.api.field_errors import quote as go_quote
from konverge_cluster.cel.addresses import add_addresses
from konverge_cluster.cel.functions import Library, can_parse, order
from konverge_cluster.cel.semver import add_versions
from konverge_cluster.cel.types import (
    BOOL,
    DOUBLE,
    INT,
    STRING,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
)
from konverge_cluster.cel.values import INT as INT64
from konverge_cluster.cel.values import NONE, EvaluationError, Optional

__all__ = ["add_kubernetes"]

URL: Final = struct("kubernetes.URL")
QUANTITY: Final = struct("kubernetes.Quantity")
FORMAT: Final = struct("kubernetes.NamedFormat")


def add_kubernetes(library: Library) -> None:
    """Add the types and functions of this module to a library."""
    _add_urls(library)
    _add_quantities(library)
    _add_formats(library)
    add_addresses(library)
    add_versions(library)
    for kind in (URL, QUANTITY, FORMAT):
        library.constant(kind.name, kind)


# URLs.

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


@dataclass(frozen=True, slots=True)
class _Url:
    cel_type: ClassVar[Type] = URL
    text: str
    scheme: str
    host: str
    path: str
    query: str

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        return self.host.rpartition("]")[2].partition(":")[2]


def _parse_url(text: str) -> _Url:
    """Parse an absolute URL or an absolute path.

    Raises: ValueError.
    """
    if not text:
        raise ValueError('parse "": empty url')
    if _CONTROL.search(text):
        raise ValueError(f"parse {go_quote(text)}: net/url: invalid control character in URL")
    scheme, colon, rest = text.partition(":")
    if not colon or not _SCHEME.fullmatch(scheme):
        if not text.startswith("/"):
            raise ValueError(f"parse {go_quote(text)}: invalid URI for request")
        scheme, rest = "", text
    elif not rest.startswith("/"):
        raise ValueError(f"parse {go_quote(text)}: invalid URI for request")
    parts = urlsplit(f"x:{rest}" if scheme else rest)
    if _BAD_ESCAPE.search(parts.path):
        bad = _BAD_ESCAPE.search(parts.path)
        shown = parts.path[bad.start() : bad.start() + 3] if bad else ""
        raise ValueError(f"parse {go_quote(text)}: invalid URL escape {go_quote(shown)}")
    host = parts.netloc.rpartition("@")[2]
    return _Url(text, scheme.lower(), host, parts.path, parts.query)


def _to_url(text: str) -> _Url:
    try:
        return _parse_url(text)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _query(url: _Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(url.query, keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found


def _escaped_path(url: _Url) -> str:
    return url.path if quote(unquote(url.path), safe="/:@&=+$,;!'()*~-._") else quote(url.path)


def _add_urls(library: Library) -> None:
    library.add("url", "string_to_url", (STRING,), URL, _to_url)
    library.add("isURL", "is_url_string", (STRING,), BOOL, can_parse(_parse_url))
    parts: dict[str, tuple[str, Callable[[_Url], str]]] = {
        "getScheme": ("url_get_scheme", lambda url: url.scheme),
        "getHost": ("url_get_host", lambda url: url.host),
        "getHostname": ("url_get_hostname", lambda url: url.hostname),
        "getPort": ("url_get_port", lambda url: url.port),
        "getEscapedPath": ("url_get_escaped_path", _escaped_path),
    }
    for name, (overload, call) in parts.items():
        library.method(name, overload, (URL,), STRING, call)
    library.method("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query)


# Quantities.


@dataclass(frozen=True, slots=True)
class _Amount:
    cel_type: ClassVar[Type] = QUANTITY
    value: Decimal


def _parse_quantity(text: str) -> _Amount:
    try:
        return _Amount(Decimal(Quantity(text).value))
    except ValueError:
        text = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvaluationError(text) from None


def _whole(amount: _Amount) -> int:
    if amount.value != int(amount.value) or int(amount.value) not in INT64:
        raise EvaluationError("cannot convert value to integer")
    return int(amount.value)


def _add_quantities(library: Library) -> None:
    two = (QUANTITY, QUANTITY)
    library.add("quantity", "string_to_quantity", (STRING,), QUANTITY, _parse_quantity)
    library.add("isQuantity", "is_quantity_string", (STRING,), BOOL, can_parse(_parse_quantity))
    library.add("sign", "quantity_sign", (QUANTITY,), INT, lambda amount: order(amount.value, 0))
    library.test("isGreaterThan", "quantity_is_greater_than", two, lambda a, b: a.value > b.value)
    library.test("isLessThan", "quantity_is_less_than", two, lambda a, b: a.value < b.value)
    library.method("compareTo", "quantity_compare_to", two, INT, lambda a, b: order(a.value, b.value))
    library.method("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, lambda a: float(a.value))
    library.method("asInteger", "quantity_get_int", (QUANTITY,), INT, _whole)
    library.test("isInteger", "quantity_is_integer", (QUANTITY,), lambda a: a.value == int(a.value))
    library.method("add", "quantity_add", two, QUANTITY, lambda a, b: _Amount(a.value + b.value))
    library.method("add", "quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, b: _Amount(a.value + b))
    library.method("sub", "quantity_sub", two, QUANTITY, lambda a, b: _Amount(a.value - b.value))
    library.method("sub", "quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda a, b: _Amount(a.value - b))


# Named formats.


@dataclass(frozen=True, slots=True)
class _Format:
    cel_type: ClassVar[Type] = FORMAT
    name: str
    check: Callable[[str], list[str]]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    # The server removes the dash at the end, and the character before it too.
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _known(name: str, text: str) -> Callable[[str], list[str]]:
    return lambda value: [] if has_format(name, value) else [text]


def _uri_errors(text: str) -> list[str]:
    try:
        _parse_url(text)
    except ValueError as error:
        return [str(error)]
    return []


_FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": dns_label_errors,
    "dns1123Subdomain": dns_subdomain_errors,
    "dns1035Label": rfc1035_label_errors,
    "qualifiedName": label_key_errors,
    "dns1123LabelPrefix": _prefix(dns_label_errors),
    "dns1123SubdomainPrefix": _prefix(dns_subdomain_errors),
    "dns1035LabelPrefix": _prefix(rfc1035_label_errors),
    "labelValue": label_value_errors,
    "uri": _uri_errors,
    "uuid": _known("uuid", "does not match the UUID format"),
    "byte": _known("byte", "invalid base64"),
    "date": _known("date", "invalid date"),
    "datetime": _known("date-time", "invalid datetime"),
}


def _add_formats(library: Library) -> None:
    formats = {name: _Format(name, check) for name, check in _FORMATS.items()}
    for name, created in formats.items():
        library.add(f"format.{name}", f"format.{name}", (), FORMAT, _constant(created))
    library.add("format.named", "format-named", (STRING,), optional_of(FORMAT), _named(formats))
    errors = optional_of(list_of(STRING))
    library.method("validate", "format-validate", (FORMAT, STRING), errors, _validate)


def _constant(created: _Format) -> Callable[[], _Format]:
    return lambda: created


def _named(formats: dict[str, _Format]) -> Callable[[str], Optional]:
    return lambda name: Optional(formats[name]) if name in formats else NONE


def _validate(created: _Format, text: str) -> Optional:
    errors = created.check(text)
    return Optional(errors) if errors else NONE
