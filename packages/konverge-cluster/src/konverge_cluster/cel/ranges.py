"""Estimates that never overflow: from the least to the most, at most 2**64 - 1."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ["MOST", "ONE", "UNKNOWN", "ZERO", "Range", "fixed"]

MOST: Final = 2**64 - 1


def _capped(value: int) -> int:
    return min(value, MOST)


def _scaled(value: int, factor: float) -> int:
    return _capped(math.ceil(float(value) * factor)) if value < MOST else MOST


class Range(NamedTuple):
    """A size or a cost that is somewhere between two numbers."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(_capped(self.least + other.least), _capped(self.most + other.most))

    def times(self, other: Range) -> Range:
        return Range(_capped(self.least * other.least), _capped(self.most * other.most))

    def scaled(self, factor: float) -> Range:
        """Multiply by a factor, rounded up."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def fixed(value: int) -> Range:
    return Range(_capped(value), _capped(value))


ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MOST)
