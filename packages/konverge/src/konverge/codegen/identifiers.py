"""Names in generated code: legal, free of clashes, and the same on every run.

Rules that hold here:

1. An attribute never hides what the class body or the machinery needs: `list`, `field`, `Resource.source`. Such a name
   takes a trailing underscore, which belongs to Python and not to the wire.
2. Where two names fall together, the first in the order of the input keeps it and the next are numbered from 2.
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
    """Names given out so far; `take` gives each only once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def take(self, *wishes: str) -> str:
        """Give the first wish that is free, or the last one with a number."""
        for wish in wishes:
            if wish not in self._taken:
                return self._note(wish)
        number = 2
        while f"{wishes[-1]}{_joint(wishes[-1])}{number}" in self._taken:
            number += 1
        return self._note(f"{wishes[-1]}{_joint(wishes[-1])}{number}")

    def _note(self, name: str) -> str:
        self._taken.add(name)
        return name


def attributes_of(wire_names: Iterable[str], *, resource: bool = False) -> dict[str, str]:
    """Map the wire names of one class to attributes; those of an object make way for what every object has."""
    names = Names()
    reserved = _USED_IN_CLASS_BODIES | (_OF_RESOURCES if resource else _OF_MODELS)
    return {wire: names.take(_attribute(wire, reserved)) for wire in wire_names}


def can_be_field(wire: str) -> bool:
    """Tell whether msgspec takes a wire name: it writes them without escapes."""
    return all(letter >= " " and letter not in '"\\' for letter in wire) and wire.isprintable()


def class_word(text: str) -> str:
    """Give a part of a class name: `privateKey` -> `PrivateKey`, `x-y` -> `XY`."""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    words = re.split(r"[^0-9A-Za-z]+", bare)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{name}_" if keyword.iskeyword(name) else name


def _attribute(wire: str, reserved: frozenset[str]) -> str:
    # The parser folds identifiers to this form, so the class would otherwise get another name than we think.
    name = unicodedata.normalize("NFKC", attribute_name(wire))
    if not name.isidentifier():
        name = attribute_name(re.sub(r"[^0-9A-Za-z]", "_", wire))
    return f"{name}_" if name in reserved or keyword.iskeyword(name) else name


def _joint(name: str) -> str:
    return "_" if name[-1:].isdigit() or name[:1].islower() else ""
