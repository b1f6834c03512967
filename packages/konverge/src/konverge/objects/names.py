"""Validation of names, label keys and label values, with the rules and messages of the server.

Each `*_errors` function returns the server's messages for an invalid value, an empty list for a valid one. Lengths
count bytes of UTF-8, as on the server.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = [
    "GENERATED_NAME_ALPHABET",
    "GENERATED_NAME_SUFFIX_LENGTH",
    "MAX_LABEL_LENGTH",
    "MAX_SUBDOMAIN_LENGTH",
    "dns_label_errors",
    "dns_subdomain_errors",
    "label_key_errors",
    "label_value_errors",
    "path_segment_errors",
    "rfc1035_label_errors",
    "safe_name",
]

MAX_LABEL_LENGTH: Final = 63
MAX_SUBDOMAIN_LENGTH: Final = 253

# The server truncates a generateName to 58 characters and appends five of these. Without vowels they form no words.
GENERATED_NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_NAME_SUFFIX_LENGTH: Final = 5

_HASH_LENGTH: Final = 10

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_RFC1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY_NAME})?"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_rfc1035_label = re.compile(_RFC1035_LABEL)
_key_name = re.compile(_KEY_NAME)
_label_value = re.compile(_LABEL_VALUE)
_unsafe = re.compile("[^a-z0-9]+")


def dns_label_errors(value: str) -> list[str]:
    """Check a DNS label (RFC 1123): the name of a namespace, a container, a port."""
    errors = _length_errors(value, MAX_LABEL_LENGTH, "characters")
    if _label.fullmatch(value):
        return errors
    if _subdomain.fullmatch(value):
        return [*errors, "must not contain dots"]
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*errors, _pattern_error(rule, _LABEL, "my-name", "123-abc")]


def dns_subdomain_errors(value: str) -> list[str]:
    """Check a DNS subdomain (RFC 1123): the name of most objects."""
    return _subdomain_errors(value, "characters")


def rfc1035_label_errors(value: str) -> list[str]:
    """Check a DNS label of RFC 1035, which starts with a letter: the name of a Service before 1.36."""
    errors = _length_errors(value, MAX_LABEL_LENGTH, "characters")
    if _rfc1035_label.fullmatch(value):
        return errors
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return [*errors, _pattern_error(rule, _RFC1035_LABEL, "my-name", "abc-123")]


def path_segment_errors(value: str) -> list[str]:
    """Check a name that only has to be a path segment: of roles, bindings and a few other kinds."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def label_key_errors(value: str) -> list[str]:
    """Check a label key, also called a qualified name: "name" or "prefix.example.com/name"."""
    prefix, slash, name = value.rpartition("/")
    rule = _pattern_error(
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        _KEY_NAME,
        "MyName",
        "my.name",
        "123-abc",
    )
    if "/" in prefix:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    errors = []
    if slash:
        problems = _subdomain_errors(prefix, "bytes") if prefix else ["must be non-empty"]
        errors += [f"prefix part {problem}" for problem in problems]
    problems = _length_errors(name, MAX_LABEL_LENGTH, "bytes") if name else ["must be non-empty"]
    if not _key_name.fullmatch(name):
        problems.append(rule)
    return errors + [f"name part {problem}" for problem in problems]


def label_value_errors(value: str) -> list[str]:
    """Check the value of a label; it may be empty."""
    errors = _length_errors(value, MAX_LABEL_LENGTH, "bytes")
    if _label_value.fullmatch(value):
        return errors
    rule = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*errors, _pattern_error(rule, _LABEL_VALUE, "MyValue", "my_value", "12345")]


def safe_name(*parts: str, limit: int = MAX_LABEL_LENGTH) -> str:
    """Join the parts with "-" to the name of a child object; equal parts give equal names.

    Promises: the result is a DNS label of at most `limit` characters. If the joined parts are such a label, they are
    the result. Otherwise (too long, capitals, dots, underscores) they are truncated, invalid characters are replaced,
    and a hash of all parts is appended, so that different parts give different names. The borders of parts count only
    in the hash: ("a-b", "c") and ("a", "b-c") both give "a-b-c".

    Raises: ValueError when there are no parts, a part is empty, or the limit is too small for the hash.
    """
    if not parts or not all(parts):
        raise ValueError(f"expected at least one part and no empty parts, got {parts!r}")
    if not _HASH_LENGTH + 2 <= limit <= MAX_LABEL_LENGTH:
        raise ValueError(f"limit: expected {_HASH_LENGTH + 2} to {MAX_LABEL_LENGTH}, got {limit}")
    joined = "-".join(parts)
    if len(joined) <= limit and _label.fullmatch(joined):
        return joined
    prefix_length = limit - _HASH_LENGTH - 1
    prefix = _unsafe.sub("-", joined.lower()).strip("-")[:prefix_length].strip("-")
    return "-".join(filter(None, (prefix, _hash(parts))))


def _hash(parts: tuple[str, ...]) -> str:
    # The lengths are hashed too, so that the borders of the parts change the hash whatever the parts contain.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    characters = []
    for _ in range(_HASH_LENGTH):
        number, index = divmod(number, len(GENERATED_NAME_ALPHABET))
        characters.append(GENERATED_NAME_ALPHABET[index])
    return "".join(characters)


def _subdomain_errors(value: str, unit: str) -> list[str]:
    errors = _length_errors(value, MAX_SUBDOMAIN_LENGTH, unit)
    if _subdomain.fullmatch(value):
        return errors
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*errors, _pattern_error(rule, _SUBDOMAIN, "example.com")]


def _length_errors(value: str, limit: int, unit: str) -> list[str]:
    too_long = len(value.encode("utf-8", "surrogatepass")) > limit
    return [f"must be no more than {limit} {unit}"] if too_long else []


def _pattern_error(rule: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"
