"""Label selectors, as a string and as the object in specs (metav1.LabelSelector).

    app=web,tier in (front,back),!canary                the string form, in a list or watch request
    {"matchLabels": {...}, "matchExpressions": [...]}   the spec form, in the spec of a Deployment or ServiceMonitor

Both forms are a list of requirements that must all be met. Rules:

1. A string is parsed as the server does it, with the server's error messages.
2. If the key is absent, `!=`, `notin` and `!key` are met; all other requirements are not.
3. An absent spec (None) selects nothing; an empty one selects everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from konverge.objects.names import label_key_errors, label_value_errors

__all__ = ["LabelRequirement", "LabelSelector", "Operator"]


class Operator(StrEnum):
    """The operator of a requirement; the value is the server's name for it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = "gt"
    LESS_THAN = "lt"


# Tuples, not sets: membership is tested by identity, while hashing an enum runs Python code.
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
_SPEC_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_SPEC_NAMES: Final = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.NOT_EQUALS: "NotIn",
    **{operator: name for name, operator in _SPEC_OPERATORS.items()},
}
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS: Final = frozenset({"", "=", "==", "!", "!=", "(", ")", ",", "<", ">"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class LabelRequirement(Struct, frozen=True):
    """A requirement on one label key; values are sorted and unique.

    Raises: ValueError with the server's message for a key, a value or a number of values that the server rejects.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "operator", Operator(self.operator))
        force_setattr(self, "values", tuple(sorted(set(self.values))))
        errors = [*self._key_errors(), *self._count_errors(), *self._value_errors()]
        if errors:
            raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether these labels meet the requirement."""
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
        operand = f"({values})" if self.operator in _SETS else values
        return f"{self.key}{_SIGNS.get(self.operator, self.operator.value)}{operand}"

    def _compares(self, value: str) -> bool:
        limit, number = _int64(self.values[0]), _int64(value)
        if limit is None or number is None:
            return False
        return number > limit if self.operator is Operator.GREATER_THAN else number < limit

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
            problems = label_value_errors(value)
            if problems:
                errors.append(_invalid(f"values[{index}][{self.key}]", value, "; ".join(problems)))
        return errors


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A selector of objects by labels: every requirement must be met.

    Promises: `LabelSelector.parse(str(selector)) == selector`; requirements are sorted by key, as the server prints
    them; `from_spec(selector.to_spec())` selects the same objects.
    """

    requirements: tuple[LabelRequirement, ...] = ()
    selects_nothing: bool = False

    def __post_init__(self) -> None:
        ordered = sorted(self.requirements, key=lambda requirement: requirement.key)
        object.__setattr__(self, "requirements", tuple(ordered))

    @classmethod
    def everything(cls) -> LabelSelector:
        """Return a selector of every object, even without labels."""
        return cls()

    @classmethod
    def nothing(cls) -> LabelSelector:
        """Return a selector of no object."""
        return cls(selects_nothing=True)

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Return a selector of the objects with all of these labels."""
        return cls(tuple(LabelRequirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse the string form.

        Raises: ValueError with the message of the server.
        """
        return cls(tuple(_Parser(text).requirements()))

    @classmethod
    def from_spec(cls, spec: Any) -> LabelSelector:
        """Convert the spec form: a dict with wire names, or a model with `match_labels` and `match_expressions`.

        Raises: ValueError for an operator, key or value that the server rejects.
        """
        if spec is None:
            return cls.nothing()
        equal: Mapping[str, str] = _member(spec, "matchLabels", "match_labels") or {}
        expressions: Iterable[Any] = _member(spec, "matchExpressions", "match_expressions") or ()
        return cls((*cls.of(equal).requirements, *map(_from_expression, expressions)))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Report whether an object with these labels is selected."""
        if self.selects_nothing:
            return False
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def to_spec(self) -> dict[str, Any]:
        """Return the spec form with wire names; `!=` becomes NotIn with one value.

        Raises: ValueError for `<`, `>` and the selector of nothing, which have no spec form.
        """
        self._check_not_nothing("a spec (leave out the field)")
        equal: dict[str, str] = {}
        expressions = []
        for requirement in self.requirements:
            if requirement.operator in _EQUAL and requirement.key not in equal:
                equal[requirement.key] = requirement.values[0]
            else:
                expressions.append(_to_expression(requirement))
        spec = {"matchLabels": equal, "matchExpressions": expressions}
        return {name: value for name, value in spec.items() if value}

    def __str__(self) -> str:
        self._check_not_nothing("a string: an empty one would select everything")
        return ",".join(map(str, self.requirements))

    def _check_not_nothing(self, form: str) -> None:
        if self.selects_nothing:
            raise ValueError(f"the selector of nothing cannot be converted to {form}")


class _Parser:
    """A parser of the server's grammar, one method per rule; each consumes its tokens."""

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
        # The empty token at the end is never consumed.
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
        # An empty element, between two commas or before a parenthesis, is the empty value.
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


def _member(spec: Any, wire_name: str, attribute: str) -> Any:
    if isinstance(spec, Mapping):
        return spec.get(wire_name)
    value = getattr(spec, attribute)
    # A model may have a sentinel for an absent field, which is neither a map nor a list nor a string.
    return value if isinstance(value, (Mapping, list, tuple, str)) else None


def _from_expression(expression: Any) -> LabelRequirement:
    operator = _member(expression, "operator", "operator")
    if operator not in _SPEC_OPERATORS:
        raise ValueError(
            f'"{operator}" is not a valid label selector operator: write one of {", ".join(_SPEC_OPERATORS)}'
        )
    values = _member(expression, "values", "values") or ()
    return LabelRequirement(_member(expression, "key", "key") or "", _SPEC_OPERATORS[operator], tuple(values))


def _to_expression(requirement: LabelRequirement) -> dict[str, Any]:
    if requirement.operator not in _SPEC_NAMES:
        raise ValueError(f"{str(requirement)!r} has no spec form: only the string form has < and >")
    expression: dict[str, Any] = {"key": requirement.key, "operator": _SPEC_NAMES[requirement.operator]}
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
