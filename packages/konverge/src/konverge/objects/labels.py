"""Which objects are meant: label selectors, as a string and as the structure that specs carry.

    app=web,tier in (front,back),!canary          the string, in a list or watch request
    {"matchLabels": {...}, "matchExpressions": [...]}   the structure, in the spec of a Deployment or Service monitor

Both say the same thing: a list of requirements that must all hold. Rules:

1. A string is read as the server reads it, and refused with the server's words.
2. A requirement on a key that is absent: `!=`, `notin` and `!key` hold; every other fails.
3. An absent structure (None) selects nothing; an empty one selects everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from konverge.objects.names import label_key_errors, label_value_errors

__all__ = ["LabelRequirement", "LabelSelector", "Operator"]


class Operator(StrEnum):
    """How a requirement compares; the value is the server's word for it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = "gt"
    LESS_THAN = "lt"


# Tuples, not sets: a member is found by identity, while hashing an enum runs Python code.
_EQUAL: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS)
_UNEQUAL: Final = (Operator.NOT_EQUALS, Operator.NOT_IN)
_SINGLE: Final = (*_EQUAL, Operator.NOT_EQUALS)
_SETS: Final = (Operator.IN, Operator.NOT_IN)
_PRESENCE: Final = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_ORDER: Final = (Operator.GREATER_THAN, Operator.LESS_THAN)
_SIGNS: Final = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<", Operator.IN: " in ", Operator.NOT_IN: " notin "}
_BY_SIGN: Final = {
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_STRUCTURED: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_STRUCTURED_NAMES: Final = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.NOT_EQUALS: "NotIn",
    **{operator: name for name, operator in _STRUCTURED.items()},
}
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS: Final = frozenset({"", "=", "==", "!", "!=", "(", ")", ",", "<", ">"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label key; values are kept sorted, each once.

    Raises: ValueError, in the server's words, for a key, a value or a number of values that the server refuses.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator", Operator(self.operator))
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))
        errors = [*self._key_errors(), *self._count_errors(), *self._value_errors()]
        if errors:
            raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether these labels fulfil the requirement."""
        operator = self.operator
        value = labels.get(self.key)
        if value is None:
            return operator in _UNEQUAL or operator is Operator.DOES_NOT_EXIST
        if operator in _UNEQUAL:
            return value not in self.values
        if operator in _PRESENCE:
            return operator is Operator.EXISTS
        if operator in _ORDER:
            return self._compares(value)
        return value in self.values

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(self.values)
        shown = f"({values})" if self.operator in _SETS else values
        return f"{self.key}{_SIGNS.get(self.operator, self.operator.value)}{shown}"

    def _compares(self, value: str) -> bool:
        mine, theirs = _int64(self.values[0]), _int64(value)
        if mine is None or theirs is None:
            return False
        return theirs > mine if self.operator is Operator.GREATER_THAN else theirs < mine

    def _key_errors(self) -> list[str]:
        errors = label_key_errors(self.key)
        return [_invalid("key", self.key, "; ".join(errors))] if errors else []

    def _count_errors(self) -> list[str]:
        count = len(self.values)
        if self.operator in _SETS and count == 0:
            return [_invalid_list("for 'in', 'notin' operators, values set can't be empty", self.values)]
        if self.operator in _SINGLE and count != 1:
            return [_invalid_list("exact-match compatibility requires one single value", self.values)]
        if self.operator in _PRESENCE and count != 0:
            return [_invalid_list("values set must be empty for exists and does not exist", self.values)]
        if self.operator in _ORDER and count != 1:
            return [_invalid_list("for 'Gt', 'Lt' operators, exactly one value is required", self.values)]
        return []

    def _value_errors(self) -> list[str]:
        errors = []
        if self.operator in _ORDER:
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors = [_invalid(f"values[{i}]", v, text) for i, v in enumerate(self.values) if _int64(v) is None]
        for index, value in enumerate(self.values):
            faults = label_value_errors(value)
            if faults:
                errors.append(_invalid(f"values[{index}][{self.key}]", value, "; ".join(faults)))
        return errors


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A choice of objects by their labels: every requirement must hold.

    Promises: `LabelSelector.parse(str(selector)) == selector`; requirements are sorted by key, as the server renders
    them; `from_structure(selector.to_structure())` selects the same objects.
    """

    requirements: tuple[LabelRequirement, ...] = ()
    selects_nothing: bool = False

    def __post_init__(self) -> None:
        ordered = sorted(self.requirements, key=lambda requirement: requirement.key)
        object.__setattr__(self, "requirements", tuple(ordered))

    @classmethod
    def everything(cls) -> LabelSelector:
        """Select every object, also one without labels."""
        return cls()

    @classmethod
    def nothing(cls) -> LabelSelector:
        """Select no object at all."""
        return cls(selects_nothing=True)

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Select the objects that carry all of these labels."""
        return cls(tuple(LabelRequirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read the string form.

        Raises: ValueError with the text that the server answers.
        """
        return cls(tuple(_Parser(text).requirements()))

    @classmethod
    def from_structure(cls, structure: Any) -> LabelSelector:
        """Read the structured form: a dict with wire names, or a model with `match_labels` and `match_expressions`.

        Raises: ValueError for an operator, key or value that the server refuses.
        """
        if structure is None:
            return cls.nothing()
        equal: Mapping[str, str] = _member(structure, "matchLabels", "match_labels") or {}
        expressions: Iterable[Any] = _member(structure, "matchExpressions", "match_expressions") or ()
        return cls((*cls.of(equal).requirements, *map(_from_expression, expressions)))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Tell whether an object with these labels is selected."""
        if self.selects_nothing:
            return False
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def to_structure(self) -> dict[str, Any]:
        """Return the structured form with wire names; `!=` becomes NotIn with one value.

        Raises: ValueError for `<`, `>` and the selector of nothing, which the structure cannot say.
        """
        self._refuse_nothing("a structure (leave the field out instead)")
        equal: dict[str, str] = {}
        expressions = []
        for requirement in self.requirements:
            if requirement.operator in _EQUAL and requirement.key not in equal:
                equal[requirement.key] = requirement.values[0]
            else:
                expressions.append(_to_expression(requirement))
        shown = {"matchLabels": equal, "matchExpressions": expressions}
        return {name: value for name, value in shown.items() if value}

    def __str__(self) -> str:
        self._refuse_nothing("a string: the empty one would select everything")
        return ",".join(map(str, self.requirements))

    def _refuse_nothing(self, form: str) -> None:
        if self.selects_nothing:
            raise ValueError(f"the selector of nothing cannot be written as {form}")


class _Parser:
    """The server's grammar, one method per rule; each takes the tokens it needs from the front."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._position = 0

    def requirements(self) -> Iterable[LabelRequirement]:
        while self._next:
            if _is_symbol(self._next) and self._next != "!":
                raise ValueError(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            self._end_of_requirement()

    @property
    def _next(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._next
        # The empty token at the end stays, however often it is read.
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def _end_of_requirement(self) -> None:
        token = self._take()
        if token == "":
            return
        if token != ",":
            raise ValueError(f"found '{token}', expected: ',' or 'end of string'")
        if _is_symbol(self._next) and self._next != "!":
            raise ValueError(f"found '{self._next}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        absent = self._next == "!"
        if absent:
            self._take()
        key = self._take()
        if _is_symbol(key):
            raise ValueError(f"found '{key}', expected: identifier")
        errors = label_key_errors(key)
        if errors:
            raise ValueError(_invalid("<nil>", key, "; ".join(errors)))
        if absent:
            return LabelRequirement(key, Operator.DOES_NOT_EXIST)
        if self._next in ("", ","):
            return LabelRequirement(key, Operator.EXISTS)
        operator = self._operator()
        return LabelRequirement(key, operator, self._set() if operator in _SETS else self._value())

    def _operator(self) -> Operator:
        token = self._take()
        if token not in _BY_SIGN:
            raise ValueError(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        return _BY_SIGN[token]

    def _value(self) -> tuple[str]:
        if self._next in ("", ","):
            return ("",)
        token = self._take()
        if _is_symbol(token):
            raise ValueError(f"found '{token}', expected: identifier")
        return (token,)

    def _set(self) -> tuple[str, ...]:
        token = self._take()
        if token != "(":
            raise ValueError(f"found '{token}' expected: '('")
        if _is_symbol(self._next) and self._next not in (",", ")"):
            raise ValueError(f"found '{self._next}', expected: ',', ')' or identifier")
        values = [self._element()]
        while (token := self._take()) == ",":
            values.append(self._element())
        return tuple(values)

    def _element(self) -> str:
        # Nothing between two commas, or between a comma and a parenthesis, is the empty value.
        if self._next in (",", ")"):
            return ""
        token = self._take()
        if _is_symbol(token):
            raise ValueError(f"found '{token}', expected: ',', or identifier")
        if self._next not in (",", ")"):
            raise ValueError(f"found '{self._next}', expected: ',' or ')'")
        return token


def _is_symbol(token: str) -> bool:
    return token in _SYMBOLS


def _int64(text: str) -> int | None:
    if len(text) > 20 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _member(holder: Any, wire_name: str, attribute: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(wire_name)
    value = getattr(holder, attribute)
    # Models mark an absent field with a value of their own, which is neither a map nor a list nor a text.
    return value if isinstance(value, (Mapping, list, tuple, str)) else None


def _from_expression(expression: Any) -> LabelRequirement:
    operator = _member(expression, "operator", "operator")
    if operator not in _STRUCTURED:
        raise ValueError(f'"{operator}" is not a valid label selector operator: write one of {", ".join(_STRUCTURED)}')
    values = _member(expression, "values", "values") or ()
    return LabelRequirement(_member(expression, "key", "key") or "", _STRUCTURED[operator], tuple(values))


def _to_expression(requirement: LabelRequirement) -> dict[str, Any]:
    if requirement.operator not in _STRUCTURED_NAMES:
        raise ValueError(f"{str(requirement)!r} has no structured form: only strings compare with < and >")
    expression: dict[str, Any] = {"key": requirement.key, "operator": _STRUCTURED_NAMES[requirement.operator]}
    if requirement.values:
        expression["values"] = list(requirement.values)
    return expression


def _invalid(path: str, value: str, text: str) -> str:
    return f"{path}: Invalid value: {_quoted(value)}: {text}"


def _invalid_list(text: str, values: tuple[str, ...]) -> str:
    return f"values: Invalid value: [{','.join(map(_quoted, values))}]: {text}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
