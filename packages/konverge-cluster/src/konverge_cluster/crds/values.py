"""Hold a value against a schema, and say what is wrong with it in the words of the real server.

A schema becomes a `Checker` once; a checker has for every JSON type the few steps that a value of that type must pass.
Every step runs, whatever the ones before it found: a text where a number is wanted is also held against `pattern` and
`enum`. The order of steps is the server's: type, combinations of schemas, text, format, number, list, enum, object.

With a correlation (`correlation.py`) an unchanged value may stay as wrong as it was: what is found in it counts for
nothing, neither here nor when a branch of `anyOf` is held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid, quote, required, too_many, type_invalid
from konverge_cluster.crds.combinations import chosen_branch, combination_step
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.formats import effective_format
from konverge_cluster.crds.numbers import INT64, is_whole
from konverge_cluster.crds.paths import Place, steps_of
from konverge_cluster.crds.reports import Report, Step
from konverge_cluster.crds.scalars import enum_step, number_step, text_step

__all__ = ["Checker", "value_problems"]

Kinds: Final = (str, int, float, bool, list, dict, type(None))
_NAMES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_GO_FORMATS: Final = {int: "int64", float: "float64"}
_TYPE_META: Final = ("kind", "apiVersion")
_LEAST, _MOST = INT64[0], INT64[-1]


def value_problems(
    checker: Checker, value: Any, *, base: str = "", correlation: Correlation | None = None
) -> list[FieldError]:
    """Everything that is wrong with a value; equal texts once."""
    report = Report(base)
    if correlation is None:
        checker.check(value, None, report, None)
    else:
        checker.check_changed(value, None, report, correlation)
    if len(report.found) < 2:
        return report.found
    return list({str(problem): problem for problem in report.found}.values())


class Checker:
    """One schema, ready to be held against values.

    `check` adds to a report what is wrong with a value. `weight` says how much of a value fits, as the server counts
    it to choose which branch of `anyOf` or `oneOf` to complain about.
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

    def check(self, value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        """Add to the report what is wrong with the value."""
        steps = self._steps[type(value)]
        if type(value) is int and not _LEAST <= value <= _MOST:
            # Go reads what does not fit into 64 bits as a float.
            value, steps = float(value), self._steps[float]
        for step in steps:
            step(value, place, report, old)

    def check_changed(self, value: Any, place: Place, report: Report, old: Correlation) -> None:
        """Check a value that is known from before: when it is unchanged, nothing counts."""
        found = report.child()
        self.check(value, place, found, old)
        if found.found and not old.unchanged():
            report.found += found.found

    def accepts(self, value: Any, place: Place, report: Report, old: Correlation | None) -> list[FieldError]:
        """What this schema, as a branch of another one, finds wrong."""
        inner = report.child()
        self.check(value, place, inner, old)
        return inner.found

    def takes_any(self, kind: type) -> bool:
        """Tell whether every value of a Python type is fine."""
        return not self._steps[kind]

    # Making the steps.

    def _steps_of(self, kind: type, schema: Mapping[str, Any], root: bool) -> list[Step]:
        steps: list[Step | None] = [self._type_step(kind)]
        if kind is not type(None):
            steps.append(combination_step(self))
            steps.append(self._own_step(kind, schema))
        steps.append(enum_step(schema))
        if kind is dict:
            steps.append(_object_step(self, schema, root))
        return [step for step in steps if step is not None]

    def _own_step(self, kind: type, schema: Mapping[str, Any]) -> Step | None:
        if kind is str:
            return text_step(schema, self.format)
        if kind is int or kind is float:
            return number_step(schema, self.format, kind)
        return _list_step(self, schema) if kind is list else None

    def _type_step(self, kind: type) -> Step | None:
        if kind is type(None):
            return None if not self.types or self.nullable else _wrong_type(",".join(self.types), "null")
        if self.fits_type(kind):
            return None
        if kind is float and "integer" in self.types:
            return _whole_step(",".join(self.types))
        if self.format and kind not in (str, list):
            return _wrong_type(self.format, _GO_FORMATS.get(kind, ""))
        return _wrong_type(",".join(self.types), _NAMES[kind])

    def fits_type(self, kind: type) -> bool:
        """Tell whether every value of a Python type has the right JSON type."""
        if not self.types and not self.format:
            return True
        if self.format and kind in (str, list) and not {"number", "integer"} & set(self.types):
            return True
        return _NAMES[kind] in self.types or (kind is int and "number" in self.types)

    # Weighing.

    def weight(self, value: Any) -> int:
        """Count what fits, as the server does: a point for each check that applies, another for some that pass."""
        if value is None:
            return 1 if not self.types or self.nullable else 0
        kind = type(value)
        points = 3 + self._combined_weight(value)
        if self.types or self.format:
            whole = kind is float and "integer" in self.types and is_whole(value)
            points += 2 if self.fits_type(kind) or whole else 1
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
                points += chosen_branch(branches, value).weight(value)
        return points


def _wrong_type(expected: str, found: str) -> Step:
    def step(_value: Any, place: Place, report: Report, _old: Correlation | None) -> None:
        name = steps_of(place)
        text = f"{name} in body must be of type {expected}: {quote(found)}"
        report.found.append(type_invalid(report.path(name), found, text))

    return step


def _whole_step(expected: str) -> Step:
    refuse = _wrong_type(expected, "number")

    def step(value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        if not is_whole(value):
            refuse(value, place, report, old)

    return step


def _list_step(checker: Checker, schema: Mapping[str, Any]) -> Step | None:
    items, least, most = checker.items, schema.get("minItems"), schema.get("maxItems")
    if items is None and least is None and most is None:
        return None
    any_text = items is not None and items.takes_any(str)

    def step(value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        if items is not None:
            for index, item in enumerate(value):
                if any_text and type(item) is str:
                    continue
                before = old.index(index) if old is not None else None
                if before is None:
                    items.check(item, (place, index), report, None)
                else:
                    items.check_changed(item, (place, index), report, before)
        if least is not None and len(value) < least:
            name = steps_of(place)
            text = f"{name} in body should have at least {least} items"
            report.found.append(invalid(report.path(name), len(value), text))
        if most is not None and len(value) > most:
            report.found.append(too_many(report.path(steps_of(place)), len(value), most))

    return step


def _object_step(checker: Checker, schema: Mapping[str, Any], root: bool) -> Step | None:
    wanted = schema.get("required") or ()
    sizes, members = _sizes_step(schema), _members_step(checker, schema, root)
    if not wanted and sizes is None:
        return members

    def step(value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        if sizes is not None:
            sizes(value, place, report, old)
        if members is not None:
            members(value, place, report, old)
        for key in wanted:
            if key not in value:
                report.found.append(required(report.path(f"{steps_of(place)}.{key}")))

    return step


def _sizes_step(schema: Mapping[str, Any]) -> Step | None:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is None and most is None:
        return None

    def step(value: Any, place: Place, report: Report, _: Correlation | None) -> None:
        name = steps_of(place)
        if least is not None and len(value) < least:
            text = f"{name} in body should have at least {least} properties"
            report.found.append(invalid(report.path(name), len(value), text))
        if most is not None and len(value) > most:
            report.found.append(too_many(report.path(name), len(value), most))

    return step


def _members_step(checker: Checker, schema: Mapping[str, Any], root: bool) -> Step | None:
    closed, values = schema.get("additionalProperties") is False, checker.values
    members = {name: (each, name if root else f".{name}") for name, each in checker.properties.items()}
    if not (members or closed or values):
        return None
    texts = frozenset(name for name, each in checker.properties.items() if each.takes_any(str))
    numbers = frozenset(name for name, each in checker.properties.items() if each.takes_any(int))
    find = members.get

    def step(value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        for key, item in value.items():
            if type(item) is str and key in texts:
                continue
            if type(item) is int and key in numbers and _LEAST <= item <= _MOST:
                continue
            member = find(key)
            if member is None:
                if closed:
                    _forbid(key, place, report)
                if values is None:
                    continue
                member = (values, f".{key}")
            before = old.key(key) if old is not None and not (root and key in _TYPE_META) else None
            if before is None:
                member[0].check(item, (place, member[1]), report, None)
            else:
                member[0].check_changed(item, (place, member[1]), report, before)

    return step


def _forbid(key: str, place: Place, report: Report) -> None:
    name = steps_of(place)
    report.found.append(invalid(report.path(name), key, f"{name}.{key} in body is a forbidden property"))
