"""Field selectors, such as ``status.phase!=Running,spec.nodeName=node-1``.

Only strings are compared, and only for equality. The server decides which fields of a kind can be selected. An absent
field counts as the empty string, as on the server. In a value, backslash, comma and equals sign are escaped with a
backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

__all__ = ["FieldRequirement", "FieldSelector"]

_OPERATOR: Final = re.compile(r"!=|==|=")
_SPECIAL: Final = re.compile(r"[\\,=]")


class FieldRequirement(Struct, frozen=True):
    """One condition on one field: it has this value, or (when `equal` is False) any other."""

    field: str
    value: str
    equal: bool = True

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Report whether these fields meet the requirement."""
        return (fields.get(self.field, "") == self.value) is self.equal

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{_SPECIAL.sub(_escape, self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A selector of objects by fields: every requirement must be met.

    Promise: `FieldSelector.parse(str(selector)) == selector`; requirements are sorted by their text.
    """

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        for requirement in self.requirements:
            if not requirement.field or _SPECIAL.search(requirement.field) or requirement.field.endswith("!"):
                raise ValueError(f"{requirement.field!r} is not a field (write a wire path such as 'metadata.name')")
        object.__setattr__(self, "requirements", tuple(sorted(self.requirements, key=str)))

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Select the objects whose fields have these values."""
        return cls(tuple(FieldRequirement(field, value) for field, value in fields.items()))

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Parse the string form.

        Raises: ValueError with the message of the server.
        """
        return cls(tuple(_parse_term(term, text) for term in sorted(_terms(text)) if term))

    @property
    def fields(self) -> frozenset[str]:
        """The fields that `matches` uses."""
        return frozenset(requirement.field for requirement in self.requirements)

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Report whether an object with these fields, keyed by wire path, is selected."""
        return all(requirement.matches(fields) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _terms(text: str) -> Iterator[str]:
    start = 0
    escaped = False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _parse_term(term: str, text: str) -> FieldRequirement:
    match = _OPERATOR.search(term)
    if match is None:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
    return FieldRequirement(term[: match.start()], _unescape(term[match.end() :]), match[0] != "!=")


def _unescape(value: str) -> str:
    unescaped = []
    characters = iter(value)
    for character in characters:
        if character in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        if character == "\\":
            unescaped.append(_check_escaped(next(characters, "")))
        else:
            unescaped.append(character)
    return "".join(unescaped)


def _check_escaped(character: str) -> str:
    if character == "" or character not in "\\,=":
        raise ValueError(f"invalid field selector: invalid escape sequence: \\{character}")
    return character


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"
