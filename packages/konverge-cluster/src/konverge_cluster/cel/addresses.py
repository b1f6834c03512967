"""IP addresses and CIDRs in expressions. Parse errors are those of Go's netip package."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from konverge_cluster.api.field_errors import quote
from konverge_cluster.cel.functions import Library, can_parse
from konverge_cluster.cel.types import BOOL, INT, STRING, Type, opaque
from konverge_cluster.cel.values import EvaluationError, no_overload

__all__ = ["add_addresses"]

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HEX: Final = re.compile("[0-9a-fA-F]*")


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


# Parsing.


class _AddressError(ValueError):
    """A text is not an address; the message says why, and at which rest of it."""


def _address_error(why: str, at: str = "") -> _AddressError:
    return _AddressError(f"{why} (at {quote(at)})" if at else why)


def _parse(text: str) -> tuple[Address, str]:
    """Parse an address; return it with its zone.

    Raises: _AddressError.
    """
    first = next((each for each in text if each in ".:%"), "")
    try:
        if first == ".":
            _check_four(text)
            return ipaddress.IPv4Address(text), ""
        if first == ":":
            bare, percent, zone = text.partition("%")
            if percent and not zone:
                raise _address_error("zone must be a non-empty string")
            _check_six(bare)
            return ipaddress.IPv6Address(bare), zone
        raise _address_error("missing IPv6 address" if first else "unable to parse IP")
    except ValueError as error:
        raise _AddressError(f"ParseAddr({quote(text)}): {error}") from None


def _check_four(text: str) -> None:
    fields, digits = 0, ""
    for at, each in enumerate(text):
        if each in "0123456789":
            if digits == "0":
                raise _address_error("IPv4 field has octet with leading zero")
            digits += each
            if int(digits) > 255:
                raise _address_error("IPv4 field has value >255")
            continue
        if each != ".":
            raise _address_error("unexpected character", text[at:])
        if not digits or at == len(text) - 1:
            raise _address_error("IPv4 field must have at least one digit", text[at:])
        if fields == 3:
            raise _address_error("IPv4 address too long")
        fields, digits = fields + 1, ""
    if fields < 3:
        raise _address_error("IPv4 address too short")


def _check_six(text: str) -> None:
    rest, fields = text, 0
    shortened = rest.startswith("::")
    if shortened:
        rest = rest[2:]
        if not rest:
            return
    while fields < 8:
        word = _six_field(rest)
        if rest[len(word) :].startswith("."):
            fields, rest = fields + _four_in_six(rest, fields, shortened=shortened), ""
            break
        fields, rest = fields + 1, rest[len(word) :]
        if not rest:
            break
        rest, is_short = _after_field(rest, shortened=shortened)
        shortened = shortened or is_short
        if not rest:
            break
    if rest:
        raise _address_error("trailing garbage after address", rest)
    if fields < 8 and not shortened:
        raise _address_error("address string too short")
    if fields == 8 and shortened:
        raise _address_error("the :: must expand to at least one field of zeros")


def _six_field(rest: str) -> str:
    found = _HEX.match(rest)
    word = found[0] if found else ""
    if len(word) > 4:
        raise _address_error("each group must have 4 or less digits", rest)
    if not word:
        raise _address_error("each colon-separated field must have at least one digit", rest)
    return word


def _four_in_six(rest: str, fields: int, *, shortened: bool) -> int:
    if not shortened and fields != 6:
        raise _address_error("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if fields > 6:
        raise _address_error("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    _check_four(rest)
    return 2


def _after_field(rest: str, *, shortened: bool) -> tuple[str, bool]:
    """Return the rest after the colon that follows a field, and whether a second colon followed."""
    if not rest.startswith(":"):
        raise _address_error("unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _address_error("colon must be followed by more characters", rest)
    rest = rest[1:]
    if not rest.startswith(":"):
        return rest, False
    if shortened:
        raise _address_error("multiple :: in address", rest)
    return rest[1:], True


def _parse_ip(text: str) -> _Ip:
    try:
        address, zone = _parse(text)
    except _AddressError as error:
        what = f"IP Address {quote(text)} parse error during conversion from string"
        raise EvaluationError(f"{what}: {error}") from None
    if zone:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return _Ip(address)


def _to_cidr(text: str) -> _Cidr:
    what = "network address parse error during conversion from string: "
    try:
        return _parse_cidr(text)
    except _AddressError as error:
        # The server repeats the message.
        raise EvaluationError(f"{what}{what}netip.ParsePrefix({quote(text)}): {error}") from None
    except EvaluationError as error:
        raise EvaluationError(f"{what}{error}") from None


def _parse_cidr(text: str) -> _Cidr:
    name, slash, length = text.rpartition("/")
    if not slash:
        raise _address_error("no '/'")
    address, zone = _parse(name)
    if zone:
        raise _address_error("IPv6 zones cannot be present in a prefix")
    if not (length.isascii() and length.isdigit()) or (len(length) > 1 and length.startswith("0")):
        raise _address_error(f"bad bits after slash: {quote(length)}")
    if int(length) > address.max_prefixlen:
        raise _address_error("prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return _Cidr(address, int(length))


# Functions.


def _parse_argument(read: Callable[[str], Any], other: Any) -> Any:
    """Return an argument that may be a string, parsed; an invalid string matches no overload."""
    try:
        return read(other) if isinstance(other, str) else other
    except EvaluationError:
        raise no_overload() from None


def _holds_ip(cidr: _Cidr, other: Any) -> bool:
    ip = _parse_argument(_parse_ip, other)
    return ip.address.version == cidr.address.version and ip.address in cidr.network


def _holds_cidr(cidr: _Cidr, other: Any) -> bool:
    inner = _parse_argument(_to_cidr, other)
    same = inner.address.version == cidr.address.version
    return same and inner.length >= cidr.length and inner.address in cidr.network


def _is_global(address: Address) -> bool:
    broadcast = address == ipaddress.ip_address("255.255.255.255")
    special = address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local
    return not broadcast and not special


def _in(address: Address, *networks: str) -> bool:
    return any(address in ipaddress.ip_network(each) for each in networks if (":" in each) == (address.version == 6))


_TESTS: Final[dict[str, tuple[str, Callable[[Address], bool]]]] = {
    "isUnspecified": ("ip_is_unspecified", lambda address: address.is_unspecified),
    "isLoopback": ("ip_is_loopback", lambda address: address.is_loopback),
    "isLinkLocalMulticast": ("ip_is_link_local_multicast", lambda address: _in(address, "224.0.0.0/24", "ff02::/16")),
    "isLinkLocalUnicast": ("ip_is_link_local_unicast", lambda address: _in(address, "169.254.0.0/16", "fe80::/10")),
    "isGlobalUnicast": ("ip_is_global_unicast", _is_global),
}


def add_addresses(library: Library) -> None:
    """Add IP addresses and CIDRs to a library."""
    library.add("ip", "string_to_ip", (STRING,), IP, _parse_ip)
    library.add("isIP", "is_ip", (STRING,), BOOL, can_parse(_parse_ip))
    library.add("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, lambda text: str(_parse_ip(text)) == text)
    library.add("string", "ip_to_string", (IP,), STRING, str)
    library.method("family", "ip_family", (IP,), INT, lambda ip: ip.address.version)
    for name, (overload, check) in _TESTS.items():
        library.test(name, overload, (IP,), _of_address(check))
    library.add("cidr", "string_to_cidr", (STRING,), CIDR, _to_cidr)
    library.add("isCIDR", "is_cidr", (STRING,), BOOL, can_parse(_to_cidr))
    library.add("string", "cidr_to_string", (CIDR,), STRING, str)
    library.test("containsIP", "cidr_contains_ip_string", (CIDR, STRING), _holds_ip)
    library.test("containsIP", "cidr_contains_ip_ip", (CIDR, IP), _holds_ip)
    library.test("containsCIDR", "cidr_contains_cidr_string", (CIDR, STRING), _holds_cidr)
    library.test("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), _holds_cidr)
    library.method("ip", "cidr_ip", (CIDR,), IP, lambda cidr: _Ip(cidr.address))
    library.method("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.length)
    library.method("masked", "cidr_masked", (CIDR,), CIDR, _masked)
    for kind in (IP, CIDR):
        library.constant(kind.name, kind)


def _masked(cidr: _Cidr) -> _Cidr:
    return _Cidr(cidr.network.network_address, cidr.length)


def _of_address(check: Callable[[Address], bool]) -> Callable[[_Ip], bool]:
    return lambda ip: check(ip.address)
