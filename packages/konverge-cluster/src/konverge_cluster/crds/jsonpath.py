"""JSONPath in the server's dialect: fields, indices and slices, keys in brackets, unions, wildcards, `..`, filters.

`compile_path` returns a function from an object to the values that the path matches. A missing field matches
nothing; an index that is out of bounds, or a filter on something that is no list, raises `PathError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

__all__ = ["PathError", "compile_path"]

Find = Callable[[list[Any]], list[Any]]
"""One step: from the values that were matched so far to those that it matches in them."""

_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_QUOTED_KEY: Final = re.compile(r"'([^']*)'")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[0-9.]+")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class PathError(ValueError):
    """The path is invalid, or cannot be evaluated on this object."""


def compile_path(path: str) -> Callable[[Any], list[Any]]:
    """Return a function that returns the matches of a path.

    Raises: PathError for an invalid path.
    """
    steps = _Reader(path).read()

    def find(value: Any) -> list[Any]:
        return _follow(steps, [value])

    return find


def _follow(steps: list[Find], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


class _Reader:
    """Parses a path from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps: list[Find] = []

    def read(self) -> list[Find]:
        recursive = False
        while self._at < len(self._text):
            rest = self._text[self._at :]
            if rest.startswith(".."):
                if recursive:
                    raise PathError("invalid multiple recursive descent")
                self._at += 2
                self._steps.append(_everything)
                recursive = True
                if self._letter().isalnum() or self._letter() == "_":
                    self._field()
                continue
            recursive = False
            self._step(rest)
        return self._steps

    def _step(self, rest: str) -> None:
        letter = rest[0]
        if rest.startswith("[?("):
            self._filter()
        elif letter in " @$":
            self._at += 1
        elif letter == "[":
            self._bracket()
        elif letter in "\"'":
            self._quote(letter)
        elif letter == ".":
            self._at += 1
            self._field()
        elif letter in "+-" or letter.isdigit():
            self._number()
        elif letter == "_" or letter.isalnum():
            self._word()
        else:
            raise PathError(f"unrecognized character in action: {letter}")

    def _letter(self) -> str:
        return self._text[self._at : self._at + 1]

    def _until(self, end: str, what: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0 or "\n" in self._text[self._at : stop]:
            raise PathError(f"unterminated {what}")
        found = self._text[self._at : stop]
        self._at = stop + len(end)
        return found

    def _field(self) -> None:
        start = self._at
        while self._letter() and self._letter() not in _TERMINATORS:
            self._at += 2 if self._letter() == "\\" else 1
        name = self._text[start : self._at].replace("\\", "")
        self._steps.append(_members if name == "*" else _field(name))

    def _bracket(self) -> None:
        self._at += 1
        self._steps.append(_bracket_step(self._until("]", "array")))

    def _filter(self) -> None:
        start = self._at + 3
        quote, end = "", -1
        for at in range(start, len(self._text)):
            letter = self._text[at]
            if letter in "\"'" and (not quote or (letter == quote and self._text[at - 1] != "\\")):
                quote = "" if quote else letter
            elif letter == ")" and not quote:
                end = at
                break
        if end < 0:
            raise PathError("unterminated filter")
        if self._text[end + 1 : end + 2] != "]":
            raise PathError("unclosed array expect ]")
        self._at = end + 2
        self._steps.append(_filter_step(self._text[start:end]))

    def _quote(self, mark: str) -> None:
        match = re.compile(rf"{mark}((?:[^{mark}\\\n]|\\.)*){mark}").match(self._text, self._at)
        if match is None:
            raise PathError("unterminated quoted string")
        self._at = match.end()
        text = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), match[1])
        self._steps.append(_constant(text))

    def _number(self) -> None:
        match = _NUMBER.match(self._text, self._at)
        try:
            value = float(match[0]) if match and "." in match[0] else int(match[0] if match else "")
        except ValueError:
            raise PathError(f"cannot parse number {match[0] if match else ''}") from None
        self._at = match.end() if match else self._at
        self._steps.append(_constant(value))

    def _word(self) -> None:
        start = self._at
        while self._letter() and self._letter() not in _TERMINATORS:
            self._at += 1
        word = self._text[start : self._at]
        if word not in ("true", "false"):
            raise PathError(f"unrecognized identifier {word}")
        self._steps.append(_constant(word == "true"))


def _constant(value: Any) -> Find:
    return lambda values: [value for _ in values]


def _field(name: str) -> Find:
    return lambda values: [each[name] for each in values if isinstance(each, dict) and name in each]


def _members(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def _everything(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        inner = _members([value])
        if inner:
            found += [value, *_everything(inner)]
    return found


def _bracket_step(text: str) -> Find:
    text = ":" if text == "*" else text
    parts = text.split(",")
    if len(parts) > 1:
        branches = [_bracket_step(part.strip()) for part in parts]
        return lambda values: [found for branch in branches for found in branch(values)]
    key = _QUOTED_KEY.fullmatch(text)
    if key is not None:
        steps = _Reader(f".{key[1]}").read()
        return lambda values: _follow(steps, values)
    match = _SLICE.fullmatch(text)
    if match is None:
        raise PathError(f"invalid array index {text}")
    start, stop, step = (None if part in (None, "", ":") else int(part.removeprefix(":")) for part in match.groups())
    single = match[2] is None
    return lambda values: [item for value in values for item in _slice(value, start, stop, step, single=single)]


def _slice(value: Any, start: int | None, stop: int | None, step: int | None, *, single: bool) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise PathError(f"{type(value).__name__} is not array or slice")
    size = len(value)
    first = start or 0
    last = first + 1 if single else size if stop is None else stop
    derived = single and last == 0
    first += size if first < 0 else 0
    last += size if last < 0 or derived else 0
    if first == last:
        return []
    if not 0 <= first < size or not 0 <= last <= size or first > last:
        raise PathError(f"array index out of bounds: index {first}, length {size}")
    if step is not None and step <= 0:
        raise PathError("step must be > 0")
    return value[first : last : step or 1]


def _filter_step(text: str) -> Find:
    match = _COMPARISON.fullmatch(text)
    left = _Reader(match[1] if match else text).read()
    right = _Reader(match[3]).read() if match else []
    operator = match[2] if match else "exists"

    def passes(item: Any) -> bool:
        found = _follow(left, [item])
        if operator == "exists":
            return bool(found)
        other = _follow(right, [item]) if found else []
        if len(found) > 1 or len(other) > 1:
            raise PathError("can only compare one element at a time")
        return bool(other) and _compare(operator, found[0], other[0])

    def step(values: list[Any]) -> list[Any]:
        kept = []
        for value in values:
            if not isinstance(value, list):
                raise PathError("not array or slice and cannot be filtered")
            kept += [item for item in value if passes(item)]
        return kept

    return step


def _compare(operator: str, left: Any, right: Any) -> bool:
    kinds = {_comparison_kind(left), _comparison_kind(right)}
    if len(kinds) > 1 or "" in kinds:
        raise PathError("incompatible types for comparison")
    if operator in ("==", "!="):
        return bool((left == right) is (operator == "=="))
    if operator not in ("<", ">", "<=", ">=") or kinds == {"bool"}:
        raise PathError(f"unrecognized filter operator {operator}")
    if operator[0] == "<":
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))


def _comparison_kind(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string")):
        if isinstance(value, kind):
            return name
    return ""
