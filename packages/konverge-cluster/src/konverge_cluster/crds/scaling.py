"""The scale subresource of a custom resource: its paths, and validation of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.api.strategy import Scaling
from konverge_cluster.patches.go_text import kind_of, plain

__all__ = ["ScalePaths"]

_MOST: Final = 2**31 - 1


class _WrongType(ValueError):
    """A value on the path has another type than the path requires."""


class ScalePaths:
    """The paths of `subresources.scale`, with the leading dot."""

    def __init__(self, scale: Mapping[str, Any]) -> None:
        self._spec: str = scale["specReplicasPath"]
        self._status: str = scale["statusReplicasPath"]
        self._selector: str | None = scale.get("labelSelectorPath")

    @property
    def scaling(self) -> Scaling:
        """Return the same paths for the handler of the subresource."""
        selector = _keys(self._selector) if self._selector else None
        return Scaling(_keys(self._spec), _keys(self._status), selector, selector_text=True)

    def spec_errors(self, document: Mapping[str, Any]) -> Iterator[FieldError]:
        """Return the errors of the desired replicas."""
        yield from _number_errors(document, self._spec)

    def status_errors(self, document: Mapping[str, Any]) -> Iterator[FieldError]:
        """Return the errors of the observed replicas and the selector."""
        yield from _number_errors(document, self._status)
        if self._selector is not None:
            try:
                _find(document, _keys(self._selector), str, "string")
            except _WrongType as wrong:
                yield invalid(self._selector, "", str(wrong))


def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _number_errors(document: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    try:
        number = _find(document, _keys(path), int, "int64") or 0
    except _WrongType as wrong:
        yield invalid(path, 0, str(wrong))
        return
    if number < 0:
        yield invalid(path, number, "should be a non-negative integer")
    elif number > _MOST:
        yield invalid(path, number, f"should be less than or equal to {_MOST}")


def _find(document: Any, keys: tuple[str, ...], expected_type: type, name: str) -> Any:
    """Return the value at the end of a path, None if there is none."""
    value = document
    for depth, key in enumerate(keys):
        if value is None:
            return None
        if type(value) is not dict:
            raise _wrong(keys[: depth + 1], value, "map[string]interface{}")
        if key not in value:
            return None
        value = value[key]
    if type(value) is not expected_type:
        raise _wrong(keys, value, name)
    return value


def _wrong(keys: tuple[str, ...], value: Any, expected: str) -> _WrongType:
    what = f".{'.'.join(keys)} accessor error: {plain(value)}"
    return _WrongType(f"{what} is of the type {kind_of(value)}, expected {expected}")
