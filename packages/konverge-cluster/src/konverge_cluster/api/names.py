"""Validation of object names, and names generated from generateName.

Each function returns the error texts, an empty list for a valid name. `prefix` is True when the value is a
generateName, to which five characters will be appended.
"""

from __future__ import annotations

import random
import re
from typing import Final

from konverge.objects.names import (
    GENERATED_NAME_ALPHABET,
    GENERATED_NAME_SUFFIX_LENGTH,
    MAX_LABEL_LENGTH,
    dns_label_errors,
    dns_subdomain_errors,
    path_segment_errors,
    rfc1035_label_errors,
)

__all__ = [
    "config_key_errors",
    "generate_name",
    "label_name_errors",
    "path_segment_name_errors",
    "rfc1035_label_name_errors",
    "subdomain_name_errors",
]

_CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+")
_CONFIG_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or"
    " 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_PREFIX_LENGTH: Final = MAX_LABEL_LENGTH - GENERATED_NAME_SUFFIX_LENGTH


def _mask_prefix(name: str, prefix: bool) -> str:
    # The server removes one character more than the dash, which matters for names at the length limit.
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Validate a name by the rule of most kinds: a lowercase DNS subdomain of at most 253 characters."""
    return dns_subdomain_errors(_mask_prefix(name, prefix))


def label_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Validate a name by the rule of namespaces: a lowercase DNS label of at most 63 characters."""
    return dns_label_errors(_mask_prefix(name, prefix))


def rfc1035_label_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Validate a name as a DNS label that starts with a letter."""
    return rfc1035_label_errors(_mask_prefix(name, prefix))


def path_segment_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Validate a name by the widest rule (RBAC): anything that fits into one path segment of a URL."""
    return [] if prefix and name in (".", "..") else path_segment_errors(name)


def config_key_errors(key: str) -> list[str]:
    """Validate a key of a ConfigMap or Secret."""
    errors = ["must be no more than 253 characters"] if len(key.encode("utf-8", "surrogatepass")) > 253 else []
    if not _CONFIG_KEY.fullmatch(key):
        errors.append(_CONFIG_KEY_TEXT)
    if key in (".", ".."):
        errors.append(f"must not be '{key}'")
    elif key.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def generate_name(prefix: str, rng: random.Random) -> str:
    """Return a name for a generateName: the prefix, truncated to fit into a label, and five random characters."""
    return prefix[:_MAX_PREFIX_LENGTH] + "".join(rng.choices(GENERATED_NAME_ALPHABET, k=GENERATED_NAME_SUFFIX_LENGTH))
