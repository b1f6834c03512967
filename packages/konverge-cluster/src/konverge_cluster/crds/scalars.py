"""Checks of a single value: lengths, patterns and formats of strings, bounds of numbers, enums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.api.field_errors import invalid, quote, too_long, type_invalid, unsupported
from konverge_cluster.cel.patterns import matches
from konverge_cluster.crds.correlation import Correlation, same
from konverge_cluster.crds.formats import matches_format
from konverge_cluster.crds.numbers import compile_number, plain_bounds
from konverge_cluster.crds.paths import FieldPath, format_steps
from konverge_cluster.crds.printable_values import printable_value
from konverge_cluster.crds.reports import Report, Step
from konverge_cluster.patches.go_text import compact_json

__all__ = ["enum_step", "number_step", "text_step"]


def text_step(schema: Mapping[str, Any], text_format: str) -> Step | None:
    maximum, minimum, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern", "")
    if maximum is None and minimum is None and not pattern and not text_format:
        return None

    def step(value: Any, field_path: FieldPath, report: Report, _old: Correlation | None) -> None:
        if maximum is not None and len(value) > maximum:
            report.errors.append(too_long(report.path(format_steps(field_path)), maximum))
        elif minimum is not None and len(value) < minimum:
            name = format_steps(field_path)
            text = f"{name} in body should be at least {minimum} chars long"
            report.errors.append(invalid(report.path(name), value, text))
        elif pattern and not matches(pattern, value):
            name = format_steps(field_path)
            report.errors.append(invalid(report.path(name), value, f"{name} in body should match '{pattern}'"))
        if text_format and not matches_format(text_format, value):
            name = format_steps(field_path)
            text = f"{name} in body must be of type {text_format}: {quote(value)}"
            report.errors.append(type_invalid(report.path(name), value, text))

    return step


def number_step(schema: Mapping[str, Any], number_format: str, kind: type) -> Step | None:
    """Return the check of integers (`kind` is int) or of floats (float)."""
    check = compile_number(schema, number_format, kind)
    if check is None:
        return None
    minimum, maximum = plain_bounds(schema, number_format) if kind is int else (1, 0)

    def step(value: Any, field_path: FieldPath, report: Report, _old: Correlation | None) -> None:
        if minimum <= value <= maximum:
            return
        name = format_steps(field_path)

        def add_error(number: Any, text: str) -> None:
            if number is None:
                report.add_error(text)
            else:
                report.errors.append(invalid(report.path(name), printable_value(number), text))

        check(value, name, add_error)

    return step


def enum_step(schema: Mapping[str, Any]) -> Step | None:
    choices = schema.get("enum")
    if not choices:
        return None
    texts = [each if isinstance(each, str) else compact_json(each) for each in choices]
    quick = frozenset(each for each in choices if isinstance(each, str))

    def step(value: Any, field_path: FieldPath, report: Report, _old: Correlation | None) -> None:
        if type(value) is str and value in quick:
            return
        if not any(_is_choice(value, each) for each in choices):
            report.errors.append(unsupported(report.path(format_steps(field_path)), printable_value(value), texts))

    return step


def _is_choice(value: Any, choice: Any) -> bool:
    if value is None or choice is None:
        return False
    if type(choice) is int and type(value) is float:
        # The server converts before it compares, which truncates the fraction.
        return int(value) == choice
    if type(choice) is float and type(value) is int:
        return bool(value == choice)
    return same(value, choice)
