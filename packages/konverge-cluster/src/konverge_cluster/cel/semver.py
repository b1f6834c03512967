"""Semantic versions in expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from konverge_cluster.api.field_errors import quote
from konverge_cluster.cel.functions import Library, can_parse, order
from konverge_cluster.cel.types import BOOL, INT, STRING, Type, struct
from konverge_cluster.cel.values import EvaluationError

__all__ = ["add_versions"]

SEMVER: Final = struct("kubernetes.Semver")

_WORD: Final = re.compile("[0-9A-Za-z-]*")


@dataclass(frozen=True, slots=True)
class _Version:
    cel_type: ClassVar[Type] = SEMVER
    numbers: tuple[int, ...]
    release: tuple[str, ...]

    @property
    def sort_key(self) -> tuple[Any, ...]:
        parts = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.release)
        return (self.numbers, not self.release, parts)


def _parse_version(text: str, normalize: bool = False) -> _Version:
    """Parse `1.2.3-rc.1+build`; normalizing also accepts `v1.2` and leading zeroes.

    Raises: EvaluationError.
    """
    text = _normalized(text) if normalize else text
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) < 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, release = rest.partition("-")
    numbers = tuple(map(_number, ("Major", "Minor", "Patch"), (parts[0], parts[1], patch)))
    words = tuple(release.split(".")) if dash else ()
    for word in words:
        _check_release(word)
    for word in build.split(".") if plus else ():
        _check_build(word)
    return _Version(numbers, words)


def _is_number(text: str) -> bool:
    return text.isascii() and (text.isdigit() or not text)


def _has_leading_zeroes(text: str) -> bool:
    return len(text) > 1 and text.startswith("0")


def _number(name: str, text: str) -> int:
    if not _is_number(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if _has_leading_zeroes(text):
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _check_release(word: str) -> None:
    if not word:
        raise EvaluationError("Prerelease is empty")
    if _is_number(word) and _has_leading_zeroes(word):
        raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quote(word)}")
    if not _WORD.fullmatch(word):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(word)}")


def _check_build(word: str) -> None:
    if not word:
        raise EvaluationError("Build meta data is empty")
    if not _WORD.fullmatch(word):
        raise EvaluationError(f"Invalid character(s) found in build meta data {quote(word)}")


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[at] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def add_versions(library: Library) -> None:
    """Add semantic versions to a library."""
    two = (SEMVER, SEMVER)
    for params in ((STRING,), (STRING, BOOL)):
        suffix = "_bool" if len(params) == 2 else ""
        library.add("semver", f"string{suffix}_to_semver", params, SEMVER, _parse_version)
        library.add("isSemver", f"is_semver_string{suffix}", params, BOOL, can_parse(_parse_version))
    library.test("isGreaterThan", "semver_is_greater_than", two, lambda a, b: a.sort_key > b.sort_key)
    library.test("isLessThan", "semver_is_less_than", two, lambda a, b: a.sort_key < b.sort_key)
    library.method("compareTo", "semver_compare_to", two, INT, lambda a, b: order(a.sort_key, b.sort_key))
    for at, name in enumerate(("major", "minor", "patch")):
        library.method(name, f"semver_{name}", (SEMVER,), INT, _numbered(at))
    library.constant(SEMVER.name, SEMVER)


def _numbered(at: int) -> Callable[[_Version], int]:
    return lambda version: version.numbers[at]
