"""Names: which ones the server takes, what it says about the others, and how it makes one from a generateName.

Each rule returns the texts of what is wrong, an empty list when nothing is. The texts are the server's own.
"""

from __future__ import annotations

import random
import re
from typing import Final

__all__ = [
    "config_key_problems",
    "dns1035_label_problems",
    "generated_name",
    "label_problems",
    "label_value_problems",
    "path_segment_problems",
    "qualified_name_problems",
    "regex_text",
    "subdomain_problems",
]

_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = f"{_LABEL_FORM}(\\.{_LABEL_FORM})*"
_DNS1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORM: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY_FORM: Final = "[-._a-zA-Z0-9]+"

_LABEL: Final = re.compile(_LABEL_FORM)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORM)
_DNS1035: Final = re.compile(_DNS1035_FORM)
_QUALIFIED: Final = re.compile(_QUALIFIED_FORM)
_CONFIG_KEY: Final = re.compile(_CONFIG_KEY_FORM)

# No vowels and no look-alikes: a random suffix never spells a word.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_STEM: Final = 63 - 5


def regex_text(message: str, form: str, *examples: str) -> str:
    """Word a broken pattern as the server does, examples first."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{form}')"


_LABEL_TEXT: Final = regex_text(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character",
    _LABEL_FORM,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT: Final = regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character",
    _SUBDOMAIN_FORM,
    "example.com",
)
_DNS1035_TEXT: Final = regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character",
    _DNS1035_FORM,
    "my-name",
    "abc-123",
)
_QUALIFIED_TEXT: Final = regex_text(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED_FORM,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_TEXT: Final = regex_text(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character",
    f"({_QUALIFIED_FORM})?",
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_TEXT: Final = regex_text(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY_FORM,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _masked(name: str, prefix: bool) -> str:
    # The server drops one letter more than the dash; lengths at the limit depend on it.
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain_problems(name: str, *, prefix: bool = False) -> list[str]:
    """The rule of most kinds: a lowercase DNS subdomain of at most 253 characters."""
    name = _masked(name, prefix)
    problems = ["must be no more than 253 characters"] if _bytes(name) > 253 else []
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_TEXT]


def label_problems(name: str, *, prefix: bool = False) -> list[str]:
    """The rule of namespaces: a lowercase DNS label of at most 63 characters."""
    name = _masked(name, prefix)
    problems = ["must be no more than 63 characters"] if _bytes(name) > 63 else []
    if _LABEL.fullmatch(name):
        return problems
    return [*problems, "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_TEXT]


def dns1035_label_problems(name: str, *, prefix: bool = False) -> list[str]:
    """A DNS label that starts with a letter."""
    name = _masked(name, prefix)
    problems = ["must be no more than 63 characters"] if _bytes(name) > 63 else []
    return problems if _DNS1035.fullmatch(name) else [*problems, _DNS1035_TEXT]


def path_segment_problems(name: str, *, prefix: bool = False) -> list[str]:
    """The widest rule (RBAC): whatever can stand in one segment of a URL."""
    if name in (".", "..") and not prefix:
        return [f"may not be '{name}'"]
    return [f"may not contain '{letter}'" for letter in ("/", "%") if letter in name]


def qualified_name_problems(name: str) -> list[str]:
    """The rule of label keys, annotation keys and finalizers: `name` or `example.com/name`."""
    prefix, slash, rest = name.partition("/")
    if not slash:
        return _name_part_problems(name)
    if "/" in rest:
        tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_TEXT}{tail}"]
    return _prefix_part_problems(prefix) + _name_part_problems(rest)


def _prefix_part_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = ["prefix part must be no more than 253 bytes"] if _bytes(prefix) > 253 else []
    return problems if _SUBDOMAIN.fullmatch(prefix) else [*problems, f"prefix part {_SUBDOMAIN_TEXT}"]


def _name_part_problems(name: str) -> list[str]:
    problems = []
    if not name:
        problems.append("name part must be non-empty")
    elif _bytes(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        problems.append(f"name part {_QUALIFIED_TEXT}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """The rule of label values: empty, or at most 63 letters of a small alphabet."""
    problems = ["must be no more than 63 bytes"] if _bytes(value) > 63 else []
    return problems if not value or _QUALIFIED.fullmatch(value) else [*problems, _LABEL_VALUE_TEXT]


def config_key_problems(key: str) -> list[str]:
    """The rule of keys in ConfigMaps and Secrets."""
    problems = ["must be no more than 253 characters"] if _bytes(key) > 253 else []
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(_CONFIG_KEY_TEXT)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def generated_name(stem: str, dice: random.Random) -> str:
    """Make a name from a generateName: the stem, cut to leave room in a label, and five random letters."""
    return stem[:_LONGEST_STEM] + "".join(dice.choices(_SUFFIX_LETTERS, k=5))
