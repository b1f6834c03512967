"""Validation of a value against a schema, with the messages of the real server.

A schema is compiled into a `Checker`, which has for every JSON type the steps that a value of that type must pass.
Every step runs, whatever the ones before it found: a string where a number is required is also checked by `pattern`
and `enum`. The order of steps is the server's: type, branches, string, format, number, list, enum, object.

With a correlation (`correlation.py`) an unchanged value may stay invalid: errors in it are ignored,
here and when a branch of `anyOf` is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid, quote, required, too_many, type_invalid
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.formats import effective_format
from konverge_cluster.crds.numbers import INT64, is_whole
from konverge_cluster.crds.paths import FieldPath, format_steps
from konverge_cluster.crds.reports import Report, Step
from konverge_cluster.crds.scalars import enum_step, number_step, text_step
from konverge_cluster.crds.schema_branches import best_branch, branch_step

__all__ = ["Checker", "value_errors"]

Kinds: Final = (str, int, float, bool, list, dict, type(None))
_NAMES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_GO_FORMATS: Final = {int: "int64", float: "float64"}
_TYPE_META: Final = ("kind", "apiVersion")
_LEAST, _MOST = INT64[0], INT64[-1]


def value_errors(
    checker: Checker, value: Any, *, base: str = "", correlation: Correlation | None = None
) -> list[FieldError]:
    """Return the errors of a value; equal messages once."""
    report = Report(base)
    if correlation is None:
        checker.check(value, None, report, None)
    else:
        checker.check_changed(value, None, report, correlation)
    if len(report.errors) < 2:
        return report.errors
    return list({str(error): error for error in report.errors}.values())


class Checker:
    """One compiled schema.

    `check` adds the errors of a value to a report. `weight` returns how well a value matches, as the server counts
    it to choose which branch of `anyOf` or `oneOf` to report.
    """

    __slots__ = (
        "_steps",
        "all_of",
        "any_of",
        "format",
        "items",
        "negated",
        "nullable",
        "one_of",
        "properties",
        "types",
        "values",
    )

    def __init__(self, schema: Mapping[str, Any], *, root: bool = False) -> None:
        kind = schema.get("type", "")
        self.types = ("integer", "string") if schema.get("x-kubernetes-int-or-string") else (kind,) if kind else ()
        self.nullable = schema.get("nullable") is True
        self.format = effective_format(schema)
        self.any_of = [Checker(each) for each in schema.get("anyOf") or ()]
        self.one_of = [Checker(each) for each in schema.get("oneOf") or ()]
        self.all_of = [Checker(each) for each in schema.get("allOf") or ()]
        self.negated = Checker(schema["not"]) if schema.get("not") is not None else None
        self.properties = {name: Checker(each) for name, each in (schema.get("properties") or {}).items()}
        more, items = schema.get("additionalProperties"), schema.get("items")
        self.values = Checker(more) if isinstance(more, Mapping) else None
        self.items = Checker(items) if isinstance(items, Mapping) else None
        self._steps = {each: tuple(self._steps_of(each, schema, root)) for each in Kinds}

    def check(self, value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        """Add the errors of the value to the report."""
        steps = self._steps[type(value)]
        if type(value) is int and not _LEAST <= value <= _MOST:
            # Go parses an integer beyond 64 bits as a float.
            value, steps = float(value), self._steps[float]
        for step in steps:
            step(value, field_path, report, old)

    def check_changed(self, value: Any, field_path: FieldPath, report: Report, old: Correlation) -> None:
        """Check a value that has an old value: if it is unchanged, errors are ignored."""
        inner = report.child()
        self.check(value, field_path, inner, old)
        if inner.errors and not old.unchanged():
            report.errors += inner.errors

    def accepts(self, value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> list[FieldError]:
        """Return the errors of this schema as a branch of another one."""
        inner = report.child()
        self.check(value, field_path, inner, old)
        return inner.errors

    def takes_any(self, kind: type) -> bool:
        """Report whether every value of a Python type is valid."""
        return not self._steps[kind]

    # Compilation of the steps.

    def _steps_of(self, kind: type, schema: Mapping[str, Any], root: bool) -> list[Step]:
        steps: list[Step | None] = [self._type_step(kind)]
        if kind is not type(None):
            steps.append(branch_step(self))
            steps.append(self._own_step(kind, schema))
        steps.append(enum_step(schema))
        if kind is dict:
            steps.append(_object_step(self, schema, root))
        return [step for step in steps if step is not None]

    def _own_step(self, kind: type, schema: Mapping[str, Any]) -> Step | None:
        if kind is str:
            return text_step(schema, self.format if not self.types or "string" in self.types else "")
        if kind is int or kind is float:
            return number_step(schema, self.format, kind)
        return _list_step(self, schema) if kind is list else None

    def _type_step(self, kind: type) -> Step | None:
        if kind is type(None):
            return None if not self.types or self.nullable else _wrong_type(",".join(self.types), "null")
        if self.matches_type(kind):
            return None
        if kind is float and "integer" in self.types:
            return _whole_step(",".join(self.types))
        if self.format and kind not in (str, list):
            return _wrong_type(self.format, _GO_FORMATS.get(kind, ""))
        return _wrong_type(",".join(self.types), _NAMES[kind])

    def matches_type(self, kind: type) -> bool:
        """Report whether every value of a Python type has the right JSON type."""
        if not self.types and not self.format:
            return True
        if self.format and kind in (str, list) and not {"number", "integer"} & set(self.types):
            return True
        return _NAMES[kind] in self.types or (kind is int and "number" in self.types)

    # Weight.

    def weight(self, value: Any) -> int:
        """Return the weight of a value as the server counts: a point for each check that applies, and more for some."""
        if value is None:
            return 1 if not self.types or self.nullable else 0
        kind = type(value)
        points = 3 + self._combined_weight(value)
        if self.types or self.format:
            whole = kind is float and "integer" in self.types and is_whole(value)
            points += 2 if self.matches_type(kind) or whole else 1
        if kind is str:
            return points + (2 if self.format else 1)
        if kind is int or kind is float:
            return points + 2
        if kind is list:
            return points + 2 + sum(self.items.weight(item) for item in value if self.items is not None)
        if kind is dict:
            return points + 1 + self._members_weight(value)
        return points

    def _members_weight(self, value: dict[str, Any]) -> int:
        points = 0
        for key, item in value.items():
            member = self.properties.get(key) or self.values
            if member is not None:
                points += member.weight(item)
        return points

    def _combined_weight(self, value: Any) -> int:
        points = 1 + sum(each.weight(value) for each in self.all_of)
        for branches in (self.any_of, self.one_of):
            if branches:
                points += best_branch(branches, value).weight(value)
        return points


def _wrong_type(expected: str, found: str) -> Step:
    def step(_value: Any, field_path: FieldPath, report: Report, _old: Correlation | None) -> None:
        name = format_steps(field_path)
        text = f"{name} in body must be of type {expected}: {quote(found)}"
        report.errors.append(type_invalid(report.path(name), found, text))

    return step


def _whole_step(expected: str) -> Step:
    refuse = _wrong_type(expected, "number")

    def step(value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        if not is_whole(value):
            refuse(value, field_path, report, old)

    return step


def _list_step(checker: Checker, schema: Mapping[str, Any]) -> Step | None:
    items, minimum, maximum = checker.items, schema.get("minItems"), schema.get("maxItems")
    if items is None and minimum is None and maximum is None:
        return None
    any_text = items is not None and items.takes_any(str)

    def step(value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        if items is not None:
            for index, item in enumerate(value):
                if any_text and type(item) is str:
                    continue
                before = old.index(index) if old is not None else None
                if before is None:
                    items.check(item, (field_path, index), report, None)
                else:
                    items.check_changed(item, (field_path, index), report, before)
        if minimum is not None and len(value) < minimum:
            name = format_steps(field_path)
            text = f"{name} in body should have at least {minimum} items"
            report.errors.append(invalid(report.path(name), len(value), text))
        if maximum is not None and len(value) > maximum:
            report.errors.append(too_many(report.path(format_steps(field_path)), len(value), maximum))

    return step


def _object_step(checker: Checker, schema: Mapping[str, Any], root: bool) -> Step | None:
    required_names = schema.get("required") or ()
    sizes, members = _sizes_step(schema), _members_step(checker, schema, root)
    if not required_names and sizes is None:
        return members

    def step(value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        if sizes is not None:
            sizes(value, field_path, report, old)
        if members is not None:
            members(value, field_path, report, old)
        for key in required_names:
            if key not in value:
                report.errors.append(required(report.path(f"{format_steps(field_path)}.{key}")))

    return step


def _sizes_step(schema: Mapping[str, Any]) -> Step | None:
    minimum, maximum = schema.get("minProperties"), schema.get("maxProperties")
    if minimum is None and maximum is None:
        return None

    def step(value: Any, field_path: FieldPath, report: Report, _: Correlation | None) -> None:
        name = format_steps(field_path)
        if minimum is not None and len(value) < minimum:
            text = f"{name} in body should have at least {minimum} properties"
            report.errors.append(invalid(report.path(name), len(value), text))
        if maximum is not None and len(value) > maximum:
            report.errors.append(too_many(report.path(name), len(value), maximum))

    return step


def _members_step(checker: Checker, schema: Mapping[str, Any], root: bool) -> Step | None:
    closed, values = schema.get("additionalProperties") is False, checker.values
    members = {name: (each, name if root else f".{name}") for name, each in checker.properties.items()}
    if not (members or closed or values):
        return None
    texts = frozenset(name for name, each in checker.properties.items() if each.takes_any(str))
    numbers = frozenset(name for name, each in checker.properties.items() if each.takes_any(int))
    find = members.get

    def step(value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        for key, item in value.items():
            if type(item) is str and key in texts:
                continue
            if type(item) is int and key in numbers and _LEAST <= item <= _MOST:
                continue
            member = find(key)
            if member is None:
                if closed:
                    _forbid(key, field_path, report)
                if values is None:
                    continue
                member = (values, f".{key}")
            before = old.key(key) if old is not None and not (root and key in _TYPE_META) else None
            if before is None:
                member[0].check(item, (field_path, member[1]), report, None)
            else:
                member[0].check_changed(item, (field_path, member[1]), report, before)

    return step


def _forbid(key: str, field_path: FieldPath, report: Report) -> None:
    name = format_steps(field_path)
    report.errors.append(invalid(report.path(name), key, f"{name}.{key} in body is a forbidden property"))
