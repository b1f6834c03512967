"""Names: the rules of the kinds, with what a generateName may look like, and how the server makes a name from one.

Each rule returns the texts of what is wrong, an empty list when nothing is; `prefix` says that the value is a
generateName, to which five letters will be added.
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
    "generated_name",
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
_LONGEST_STEM: Final = MAX_LABEL_LENGTH - GENERATED_NAME_SUFFIX_LENGTH


def _masked(name: str, prefix: bool) -> str:
    # The server drops one letter more than the dash; lengths at the limit depend on it.
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """The rule of most kinds: a lowercase DNS subdomain of at most 253 characters."""
    return dns_subdomain_errors(_masked(name, prefix))


def label_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """The rule of namespaces: a lowercase DNS label of at most 63 characters."""
    return dns_label_errors(_masked(name, prefix))


def rfc1035_label_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """A DNS label that starts with a letter."""
    return rfc1035_label_errors(_masked(name, prefix))


def path_segment_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """The widest rule (RBAC): whatever can stand in one segment of a URL."""
    return [] if prefix and name in (".", "..") else path_segment_errors(name)


def config_key_errors(key: str) -> list[str]:
    """The rule of keys in ConfigMaps and Secrets."""
    problems = ["must be no more than 253 characters"] if len(key.encode("utf-8", "surrogatepass")) > 253 else []
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(_CONFIG_KEY_TEXT)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def generated_name(stem: str, rng: random.Random) -> str:
    """Make a name from a generateName: the stem, cut to leave room in a label, and five random letters."""
    return stem[:_LONGEST_STEM] + "".join(rng.choices(GENERATED_NAME_ALPHABET, k=GENERATED_NAME_SUFFIX_LENGTH))
