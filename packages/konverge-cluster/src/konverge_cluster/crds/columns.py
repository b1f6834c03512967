"""The table of a custom resource: the name, and the printer columns of the definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from konverge_cluster.api.tables import CREATED_DESCRIPTION, NAME_COLUMN, Column, age_of
from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.crds.jsonpath import PathError, compile_path

__all__ = ["TableColumns"]

_AGE: Final[Mapping[str, Any]] = {
    "name": "Age",
    "type": "date",
    "description": CREATED_DESCRIPTION,
    "jsonPath": ".metadata.creationTimestamp",
}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)

_encode = msgspec.json.Encoder(order="deterministic").encode

Cell = Callable[[Any, float], Any]


class TableColumns:
    """The columns of one version of a resource, compiled once.

    An invalid path ends the table before its column, as on the real server. A missing value, or one of another
    type than its column, is null.
    """

    def __init__(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        columns = [NAME_COLUMN]
        cells = []
        for each in definitions or (_AGE,):
            try:
                cells.append(_compile_cell(each))
            except PathError:
                break
            columns.append(_column(each))
        self.columns = tuple(columns)
        self._cells = cells

    def cells(self, document: Mapping[str, Any], now: float) -> list[Any]:
        """Return the cells of one object."""
        return [document["metadata"]["name"], *(cell(document, now) for cell in self._cells)]


def _column(definition: Mapping[str, Any]) -> Column:
    path = definition["jsonPath"]
    return Column(
        definition["name"],
        definition["type"],
        definition.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        definition.get("format", ""),
        definition.get("priority", 0),
    )


def _compile_cell(definition: Mapping[str, Any]) -> Cell:
    find = compile_path(definition["jsonPath"])
    show = _SHOWN[definition["type"]]

    def cell(document: Any, now: float) -> Any:
        try:
            found = find(document)
        except PathError:
            return None
        return show(found[0], now) if found else None

    return cell


def _text(value: Any, _now: float) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return _encode(value).decode()
    return value if isinstance(value, str) else go_float(value)


def _integer(value: Any, _now: float) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: Any, _now: float) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    # Go prints a float without a fraction like an integer.
    return int(value) if value == int(value) else value


def _boolean(value: Any, _now: float) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: float) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return "<unknown>"
    if not _TIME.fullmatch(value):
        return "<invalid>"
    try:
        return age_of(value, now)
    except ValueError:
        return "<invalid>"


_SHOWN: Final[dict[str, Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
