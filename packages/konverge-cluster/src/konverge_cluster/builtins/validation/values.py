"""Validation of single values: numbers, names, ports, addresses, file paths."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from konverge.objects.names import dns_label_errors, dns_subdomain_errors, label_key_errors
from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, required, unsupported

__all__ = [
    "IMMUTABLE",
    "MAX_INT32",
    "NOT_NEGATIVE",
    "FieldErrors",
    "exclusive_keys",
    "is_ip",
    "parse_ip",
    "parse_network",
    "port_name_errors",
    "regex_error",
    "validate_canonical_ip",
    "validate_cidr",
    "validate_dns_label",
    "validate_dns_subdomain",
    "validate_domain_prefixed_path",
    "validate_enum",
    "validate_file_mode",
    "validate_greater_than_zero",
    "validate_immutable",
    "validate_int_or_percent",
    "validate_ip",
    "validate_name",
    "validate_no_backsteps",
    "validate_nonnegative",
    "validate_port_number",
    "validate_port_number_or_name",
    "validate_qualified_name",
    "validate_range",
    "validate_relative_path",
    "validate_volume_path",
]

FieldErrors = Iterator[FieldError]

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
MAX_INT32: Final = 2**31 - 1

_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_URL_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_PERCENT: Final = re.compile("[0-9]+%")
_FILE_MODE_TEXT: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9]+\.)|(?<=\.)0+(?=[0-9])", re.ASCII)
_IP_TEXT: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """Return the server's error text for a value that does not match a pattern."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    alternatives = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {alternatives}regex used for validation is '{pattern}')"


def validate_immutable(new: Any, old: Any, path: str) -> FieldErrors:
    if new != old:
        yield invalid(path, new, IMMUTABLE)


def validate_nonnegative(value: int | None, path: str) -> FieldErrors:
    if value is not None and value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def validate_greater_than_zero(value: int | None, path: str) -> FieldErrors:
    if value is not None and value <= 0:
        yield invalid(path, value, "must be greater than zero")


def validate_range(value: int | None, low: int, high: int, path: str) -> FieldErrors:
    if value is not None and not low <= value <= high:
        yield invalid(path, value, f"must be between {low} and {high}, inclusive")


def validate_enum(value: str | None, allowed: Iterable[str], path: str) -> FieldErrors:
    """Require a value that is one of `allowed`."""
    if not value:
        yield required(path)
    elif value not in (allowed := tuple(allowed)):
        yield unsupported(path, value, allowed)


def validate_name(value: str, rule: Callable[[str], list[str]], path: str) -> FieldErrors:
    """Validate a name with a function that returns error texts."""
    for text in rule(value):
        yield invalid(path, value, text)


def validate_dns_label(value: str, path: str) -> FieldErrors:
    return validate_name(value, dns_label_errors, path)


def validate_dns_subdomain(value: str, path: str) -> FieldErrors:
    return validate_name(value, dns_subdomain_errors, path)


def validate_qualified_name(value: str, path: str) -> FieldErrors:
    return validate_name(value, label_key_errors, path)


def validate_domain_prefixed_path(value: str, path: str) -> FieldErrors:
    """Validate a domain-prefixed path, such as `example.com/ingress`."""
    domain, slash, rest = value.partition("/")
    if not value:
        yield required(path)
    elif not (domain and slash and rest):
        yield invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from validate_dns_subdomain(domain, path)
        if not _URL_PATH.fullmatch(rest):
            yield invalid(path, rest, regex_error("Invalid path", _URL_PATH.pattern))


def validate_port_number(value: int, path: str) -> FieldErrors:
    return validate_range(value, 1, 65535, path)


def port_name_errors(name: str) -> list[str]:
    """Return the errors of a port name."""
    errors = []
    if len(name) > 15:
        errors.append("must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def validate_port_number_or_name(value: int | str, path: str) -> FieldErrors:
    if isinstance(value, str):
        return validate_name(value, port_name_errors, path)
    return validate_port_number(value, path)


def validate_int_or_percent(value: int | str, path: str) -> FieldErrors:
    """Validate a nonnegative number or a percentage."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            rule = "a valid percent string must be a numeric string followed by an ending '%'"
            yield invalid(path, value, regex_error(rule, "[0-9]+%", "1%", "93%"))
    else:
        yield from validate_nonnegative(value, path)


def is_ip(value: str) -> bool:
    """Report whether a string is an IP address, with or without leading zeros."""
    return parse_ip(value) is not None


def parse_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a string contains, ignoring leading zeros, or None."""
    try:
        return ipaddress.ip_address(_LEADING_ZEROS.sub("", value))
    except ValueError:
        return None


def validate_ip(value: str, path: str) -> FieldErrors:
    """Validate an IP address; reject leading zeros and IPv4-mapped IPv6 addresses."""
    address = parse_ip(value)
    if address is None:
        yield invalid(path, value, _IP_TEXT)
    elif _LEADING_ZEROS.search(value):
        yield invalid(path, value, "must not have leading 0s")
    elif address.version == 6 and address.ipv4_mapped:
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def validate_canonical_ip(value: str, path: str) -> FieldErrors:
    """Validate an IP address in canonical form."""
    address = parse_ip(value)
    if address is None:
        yield invalid(path, value, _IP_TEXT)
        return
    if str(address) != value:
        yield invalid(path, value, f'must be in canonical form ("{address}")')


def validate_cidr(value: str, path: str) -> FieldErrors:
    """Validate a CIDR."""
    network, (address, _, length) = parse_network(value), value.partition("/")
    if network is None:
        yield invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    elif _LEADING_ZEROS.search(address) or length != str(network.prefixlen):
        yield invalid(path, value, "must not have leading 0s in IP or prefix length")
    elif network.version == 6 and network.network_address.ipv4_mapped:
        yield invalid(path, value, "must not have an IPv4-mapped IPv6 address")
    elif parse_ip(address) != network.network_address:
        yield invalid(path, value, "must not have bits set beyond the prefix length")


def parse_network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return the network that a string contains, ignoring leading zeros, or None."""
    address, _, length = _LEADING_ZEROS.sub("", value).partition("/")
    if not re.fullmatch("[0-9]+", length, re.ASCII):
        return None
    try:
        return ipaddress.ip_network(f"{address}/{length}", strict=False)
    except ValueError:
        return None


def validate_file_mode(value: int | None, path: str) -> FieldErrors:
    if value is not None and not 0 <= value <= 0o777:
        yield invalid(path, value, _FILE_MODE_TEXT)


def validate_no_backsteps(value: str, path: str) -> FieldErrors:
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def validate_relative_path(value: str, path: str) -> FieldErrors:
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from validate_no_backsteps(value, path)


def validate_volume_path(value: str, path: str) -> FieldErrors:
    """Validate a path inside a volume; names that start with two dots are reserved for the kubelet."""
    yield from validate_relative_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def exclusive_keys(value: dict[str, Any], keys: Iterable[str], text: str, path: str) -> tuple[str, list[FieldError]]:
    """Return the first key that is present, and an error for each other one that is present."""
    present = [key for key in keys if key in value]
    return (present[0] if present else ""), [forbidden(f"{path}.{key}", text) for key in present[1:]]
