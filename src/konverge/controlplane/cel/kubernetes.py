"""Kubernetes' own types in expressions: URLs, quantities, addresses, semantic versions, named formats."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from konverge.controlplane.api.problems import quote as go_quote
from konverge.controlplane.cel.functions import Library
from konverge.controlplane.cel.types import (
    BOOL,
    DOUBLE,
    INT,
    STRING,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    struct,
)
from konverge.controlplane.cel.values import INT as INT64
from konverge.controlplane.cel.values import NONE, EvaluationError, Optional
from konverge.objects.names import (
    dns_label_errors,
    dns_subdomain_errors,
    label_key_errors,
    label_value_errors,
    rfc1035_label_errors,
)
from konverge.objects.quantities import Quantity
from konverge.schema.formats import has_format

__all__ = ["add_kubernetes"]

URL: Final = struct("kubernetes.URL")
QUANTITY: Final = struct("kubernetes.Quantity")
SEMVER: Final = struct("kubernetes.Semver")
FORMAT: Final = struct("kubernetes.NamedFormat")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")


def add_kubernetes(library: Library) -> None:
    """Add the types and functions of this module to a library."""
    _add_urls(library)
    _add_quantities(library)
    _add_addresses(library)
    _add_versions(library)
    _add_formats(library)
    for kind in (URL, QUANTITY, SEMVER, FORMAT, IP, CIDR):
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


def _read_url(text: str) -> _Url:
    """Read an absolute URL or an absolute path.

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
        return _read_url(text)
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
    library.add("isURL", "is_url_string", (STRING,), BOOL, _reads(_read_url))
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


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except (ValueError, EvaluationError):
            return False
        return True

    return check


# Quantities.


@dataclass(frozen=True, slots=True)
class _Amount:
    cel_type: ClassVar[Type] = QUANTITY
    value: Decimal


def _read_quantity(text: str) -> _Amount:
    try:
        return _Amount(Decimal(Quantity(text).value))
    except ValueError:
        text = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvaluationError(text) from None


def _whole(amount: _Amount) -> int:
    if amount.value != int(amount.value) or int(amount.value) not in INT64:
        raise EvaluationError("cannot convert value to integer")
    return int(amount.value)


def _order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _add_quantities(library: Library) -> None:
    two = (QUANTITY, QUANTITY)
    library.add("quantity", "string_to_quantity", (STRING,), QUANTITY, _read_quantity)
    library.add("isQuantity", "is_quantity_string", (STRING,), BOOL, _reads(_read_quantity))
    library.add("sign", "quantity_sign", (QUANTITY,), INT, lambda amount: _order(amount.value, 0))
    library.test("isGreaterThan", "quantity_is_greater_than", two, lambda a, b: a.value > b.value)
    library.test("isLessThan", "quantity_is_less_than", two, lambda a, b: a.value < b.value)
    library.method("compareTo", "quantity_compare_to", two, INT, lambda a, b: _order(a.value, b.value))
    library.method("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, lambda a: float(a.value))
    library.method("asInteger", "quantity_get_int", (QUANTITY,), INT, _whole)
    library.test("isInteger", "quantity_is_integer", (QUANTITY,), lambda a: a.value == int(a.value))
    library.method("add", "quantity_add", two, QUANTITY, lambda a, b: _Amount(a.value + b.value))
    library.method("add", "quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, b: _Amount(a.value + b))
    library.method("sub", "quantity_sub", two, QUANTITY, lambda a, b: _Amount(a.value - b.value))
    library.method("sub", "quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda a, b: _Amount(a.value - b))


# Addresses.

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class _Ip:
    cel_type: ClassVar[Type] = IP
    address: Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class _Cidr:
    cel_type: ClassVar[Type] = CIDR
    address: Address
    length: int

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(f"{self.address}/{self.length}", strict=False)


def _read_ip(text: str) -> _Ip:
    if "%" in text:
        raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        what = f"IP Address {go_quote(text)} parse error during conversion from string"
        raise EvaluationError(f"{what}: ParseAddr({go_quote(text)}): unable to parse IP") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return _Ip(address)


def _read_cidr(text: str) -> _Cidr:
    what = "network address parse error during conversion from string: netip.ParsePrefix"
    address, slash, length = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"{what}({go_quote(text)}): no '/'")
    try:
        found = _read_ip(address).address
        bits = int(length)
        if not length.isdigit() or not 0 <= bits <= found.max_prefixlen or str(bits) != length:
            raise ValueError(length)
    except (ValueError, EvaluationError):
        raise EvaluationError(f"{what}({go_quote(text)}): bad bits after slash: {go_quote(length)}") from None
    return _Cidr(found, bits)


def _holds_ip(cidr: _Cidr, other: Any) -> bool:
    ip = _read_ip(other) if isinstance(other, str) else other
    return ip.address.version == cidr.address.version and ip.address in cidr.network


def _holds_cidr(cidr: _Cidr, other: Any) -> bool:
    inner = _read_cidr(other) if isinstance(other, str) else other
    same = inner.address.version == cidr.address.version
    return same and inner.length >= cidr.length and inner.address in cidr.network


def _is_global(address: Address) -> bool:
    broadcast = address == ipaddress.ip_address("255.255.255.255")
    special = address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local
    return not broadcast and not special


def _in(address: Address, *networks: str) -> bool:
    return any(address in ipaddress.ip_network(each) for each in networks if (":" in each) == (address.version == 6))


def _add_addresses(library: Library) -> None:
    library.add("ip", "string_to_ip", (STRING,), IP, _read_ip)
    library.add("isIP", "is_ip", (STRING,), BOOL, _reads(_read_ip))
    library.add("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, lambda text: str(_read_ip(text)) == text)
    library.add("string", "ip_to_string", (IP,), STRING, str)
    library.method("family", "ip_family", (IP,), INT, lambda ip: ip.address.version)
    tests: dict[str, tuple[str, Callable[[Address], bool]]] = {
        "isUnspecified": ("ip_is_unspecified", lambda address: address.is_unspecified),
        "isLoopback": ("ip_is_loopback", lambda address: address.is_loopback),
        "isLinkLocalMulticast": (
            "ip_is_link_local_multicast",
            lambda address: _in(address, "224.0.0.0/24", "ff02::/16"),
        ),
        "isLinkLocalUnicast": ("ip_is_link_local_unicast", lambda address: _in(address, "169.254.0.0/16", "fe80::/10")),
        "isGlobalUnicast": ("ip_is_global_unicast", _is_global),
    }
    for name, (overload, check) in tests.items():
        library.test(name, overload, (IP,), _of_address(check))
    library.add("cidr", "string_to_cidr", (STRING,), CIDR, _read_cidr)
    library.add("isCIDR", "is_cidr", (STRING,), BOOL, _reads(_read_cidr))
    library.add("string", "cidr_to_string", (CIDR,), STRING, str)
    library.test("containsIP", "cidr_contains_ip_string", (CIDR, STRING), _holds_ip)
    library.test("containsIP", "cidr_contains_ip_ip", (CIDR, IP), _holds_ip)
    library.test("containsCIDR", "cidr_contains_cidr_string", (CIDR, STRING), _holds_cidr)
    library.test("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), _holds_cidr)
    library.method("ip", "cidr_ip", (CIDR,), IP, lambda cidr: _Ip(cidr.address))
    library.method("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.length)
    library.method(
        "masked", "cidr_masked", (CIDR,), CIDR, lambda cidr: _Cidr(cidr.network.network_address, cidr.length)
    )


def _of_address(check: Callable[[Address], bool]) -> Callable[[_Ip], bool]:
    return lambda ip: check(ip.address)


# Semantic versions.

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_WORD: Final = r"[0-9A-Za-z-]+"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_WORD}(?:\.{_WORD})*))?(?:\+({_WORD}(?:\.{_WORD})*))?"
)


@dataclass(frozen=True, slots=True)
class _Version:
    cel_type: ClassVar[Type] = SEMVER
    numbers: tuple[int, int, int]
    release: tuple[str, ...]

    @property
    def rank(self) -> tuple[Any, ...]:
        parts = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.release)
        return (self.numbers, not self.release, parts)


def _read_version(text: str, normalize: bool = False) -> _Version:
    text = _normalized(text) if normalize else text
    match = _VERSION.fullmatch(text)
    release = tuple(match[4].split(".")) if match is not None and match[4] else ()
    if match is None or any(len(each) > 1 and each.isdigit() and each.startswith("0") for each in release):
        raise EvaluationError("No Major.Minor.Patch elements found")
    return _Version((int(match[1]), int(match[2]), int(match[3])), release)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[at] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _add_versions(library: Library) -> None:
    two = (SEMVER, SEMVER)
    for params in ((STRING,), (STRING, BOOL)):
        suffix = "_bool" if len(params) == 2 else ""
        library.add("semver", f"string{suffix}_to_semver", params, SEMVER, _read_version)
        library.add("isSemver", f"is_semver_string{suffix}", params, BOOL, _is_version)
    library.test("isGreaterThan", "semver_is_greater_than", two, lambda a, b: a.rank > b.rank)
    library.test("isLessThan", "semver_is_less_than", two, lambda a, b: a.rank < b.rank)
    library.method("compareTo", "semver_compare_to", two, INT, lambda a, b: _order(a.rank, b.rank))
    for at, name in enumerate(("major", "minor", "patch")):
        library.method(name, f"semver_{name}", (SEMVER,), INT, _number(at))


def _is_version(text: str, normalize: bool = False) -> bool:
    return _reads(lambda each: _read_version(each, normalize))(text)


def _number(at: int) -> Callable[[_Version], int]:
    return lambda version: version.numbers[at]


# Named formats.


@dataclass(frozen=True, slots=True)
class _Format:
    cel_type: ClassVar[Type] = FORMAT
    name: str
    check: Callable[[str], list[str]]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    # The server takes away the dash at the end, and the letter before it too.
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _known(name: str, text: str) -> Callable[[str], list[str]]:
    return lambda value: [] if has_format(name, value) else [text]


def _uri_problems(text: str) -> list[str]:
    try:
        _read_url(text)
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
    "uri": _uri_problems,
    "uuid": _known("uuid", "does not match the UUID format"),
    "byte": _known("byte", "invalid base64"),
    "date": _known("date", "invalid date"),
    "datetime": _known("date-time", "invalid datetime"),
}


def _add_formats(library: Library) -> None:
    formats = {name: _Format(name, check) for name, check in _FORMATS.items()}
    for name, made in formats.items():
        library.add(f"format.{name}", f"format.{name}", (), FORMAT, _giving(made))
    library.add("format.named", "format-named", (STRING,), optional_of(FORMAT), _named(formats))
    problems = optional_of(list_of(STRING))
    library.method("validate", "format-validate", (FORMAT, STRING), problems, _validate)


def _giving(made: _Format) -> Callable[[], _Format]:
    return lambda: made


def _named(formats: dict[str, _Format]) -> Callable[[str], Optional]:
    return lambda name: Optional(formats[name]) if name in formats else NONE


def _validate(made: _Format, text: str) -> Optional:
    problems = made.check(text)
    return Optional(problems) if problems else NONE
