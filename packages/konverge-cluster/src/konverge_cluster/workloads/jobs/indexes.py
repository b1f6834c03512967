"""Indexes of an indexed Job: which are done, as the status writes them ("0,2-4,9"), and which pod has which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from konverge.k8s.core.v1 import Pod

__all__ = ["INDEX", "index_of", "indexes_of", "indexes_text", "pending_indexes", "read_indexes"]

INDEX: Final = "batch.kubernetes.io/job-completion-index"
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_PART: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?", re.ASCII)
_SHORTEST_RANGE: Final = 3


def index_of(pod: Pod) -> int | None:
    """Give the index of a pod; None without one that can be read."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def indexes_of(pods: Iterable[Pod]) -> set[int]:
    """Give the indexes that pods have."""
    return {index for pod in pods if (index := index_of(pod)) is not None}


def read_indexes(text: str | None, completions: int) -> set[int]:
    """Read indexes below `completions`; parts that cannot be read are left out."""
    found: set[int] = set()
    for part in (text or "").split(","):
        match = _PART.fullmatch(part)
        if match:
            first, last = int(match[1]), int(match[2] or match[1])
            found.update(range(first, min(last, completions - 1) + 1))
    return found


def indexes_text(indexes: Iterable[int]) -> str:
    """Write indexes in order, three or more in a row as a range."""
    parts: list[str] = []
    for first, last in _runs(indexes):
        if last - first + 1 >= _SHORTEST_RANGE:
            parts.append(f"{first}-{last}")
        else:
            parts.extend(str(index) for index in range(first, last + 1))
    return ",".join(parts)


def pending_indexes(taken: set[int], *, completions: int, count: int) -> list[int]:
    """Give the first `count` indexes that are not taken."""
    found: list[int] = []
    for index in range(completions):
        if len(found) >= count:
            break
        if index not in taken:
            found.append(index)
    return found


def _runs(indexes: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs
