"""Completion indexes of an indexed Job: their form in the status ("0,2-4,9"), and the index of each pod."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from konverge.k8s.core.v1 import Pod

__all__ = ["INDEX", "format_indexes", "index_of", "indexes_of", "parse_indexes", "pending_indexes"]

INDEX: Final = "batch.kubernetes.io/job-completion-index"
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_PART: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?", re.ASCII)
_SHORTEST_RANGE: Final = 3


def index_of(pod: Pod) -> int | None:
    """Return the index of a pod; None without a valid one."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def indexes_of(pods: Iterable[Pod]) -> set[int]:
    """Return the indexes of pods."""
    return {index for pod in pods if (index := index_of(pod)) is not None}


def parse_indexes(text: str | None, completions: int) -> set[int]:
    """Parse indexes below `completions`; invalid parts are skipped."""
    found: set[int] = set()
    for part in (text or "").split(","):
        match = _PART.fullmatch(part)
        if match:
            first, last = int(match[1]), int(match[2] or match[1])
            found.update(range(first, min(last, completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Format indexes in order, three or more in a row as a range."""
    parts: list[str] = []
    for first, last in _ranges(indexes):
        if last - first + 1 >= _SHORTEST_RANGE:
            parts.append(f"{first}-{last}")
        else:
            parts.extend(str(index) for index in range(first, last + 1))
    return ",".join(parts)


def pending_indexes(used: set[int], *, completions: int, count: int) -> list[int]:
    """Return the first `count` indexes that are not in use."""
    found: list[int] = []
    for index in range(completions):
        if len(found) >= count:
            break
        if index not in used:
            found.append(index)
    return found


def _ranges(indexes: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for index in sorted(set(indexes)):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return ranges
