"""Names in generated code: valid, unique, and the same on every run.

Rules that hold here:

1. An attribute never hides a name that the class body or a base class needs: `list`, `field`, `Resource.source`. Such
   an attribute has a trailing underscore, which is not part of the wire name.
2. If two names collide, the first in the order of the input keeps it and the next are numbered from 2.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

from konverge.objects.models import Model
from konverge.objects.resources import Resource
from konverge.objects.wire_names import attribute_name

__all__ = ["Names", "attributes_of", "can_be_field", "class_word"]

_USED_IN_CLASS_BODIES = frozenset({"bool", "bytes", "datetime", "dict", "field", "float", "int", "list", "str"})
_OF_MODELS = frozenset(name for name in dir(Model) if not name.startswith("__"))
_OF_RESOURCES = frozenset(name for name in dir(Resource) if not name.startswith("__"))


class Names:
    """The used names; `claim` returns each name only once."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    def claim(self, *candidates: str) -> str:
        """Return the first candidate that is not used, or the last one with a number."""
        for candidate in candidates:
            if candidate not in self._used:
                return self._add(candidate)
        last, number = candidates[-1], 2
        while f"{last}{_separator(last)}{number}" in self._used:
            number += 1
        return self._add(f"{last}{_separator(last)}{number}")

    def _add(self, name: str) -> str:
        self._used.add(name)
        return name


def attributes_of(wire_names: Iterable[str], *, resource: bool = False) -> dict[str, str]:
    """Map the wire names of one class to attributes; `resource` also avoids the attributes of every object."""
    names = Names()
    reserved = _USED_IN_CLASS_BODIES | (_OF_RESOURCES if resource else _OF_MODELS)
    return {wire: names.claim(_attribute(wire, reserved)) for wire in wire_names}


def can_be_field(wire: str) -> bool:
    """Report whether msgspec accepts a wire name. It writes names without escapes."""
    return all(letter >= " " and letter not in '"\\' for letter in wire) and wire.isprintable()


def class_word(text: str) -> str:
    """Return a part of a class name: `privateKey` -> `PrivateKey`, `x-y` -> `XY`."""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    words = re.split(r"[^0-9A-Za-z]+", bare)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{name}_" if keyword.iskeyword(name) else name


def _attribute(wire: str, reserved: frozenset[str]) -> str:
    # The Python parser normalizes identifiers to NFKC, so another form would not be the name of the attribute.
    name = unicodedata.normalize("NFKC", attribute_name(wire))
    if not name.isidentifier():
        name = attribute_name(re.sub(r"[^0-9A-Za-z]", "_", wire))
    return f"{name}_" if name in reserved or keyword.iskeyword(name) else name


def _separator(name: str) -> str:
    return "_" if name[-1:].isdigit() or name[:1].islower() else ""
