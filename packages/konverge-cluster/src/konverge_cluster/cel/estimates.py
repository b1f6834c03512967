"""Estimates that never overflow: a minimum and a maximum, at most 2**64 - 1."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ["MAX_UINT64", "ONE", "UNKNOWN", "ZERO", "Estimate", "fixed"]

MAX_UINT64: Final = 2**64 - 1


def _capped(value: int) -> int:
    return min(value, MAX_UINT64)


def _scaled(value: int, factor: float) -> int:
    return _capped(math.ceil(float(value) * factor)) if value < MAX_UINT64 else MAX_UINT64


class Estimate(NamedTuple):
    """A size or a cost between two numbers."""

    minimum: int
    maximum: int

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(_capped(self.minimum + other.minimum), _capped(self.maximum + other.maximum))

    def times(self, other: Estimate) -> Estimate:
        return Estimate(_capped(self.minimum * other.minimum), _capped(self.maximum * other.maximum))

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate multiplied by a factor, rounded up."""
        return Estimate(_scaled(self.minimum, factor), _scaled(self.maximum, factor))

    def union(self, other: Estimate) -> Estimate:
        return Estimate(min(self.minimum, other.minimum), max(self.maximum, other.maximum))


def fixed(value: int) -> Estimate:
    return Estimate(_capped(value), _capped(value))


ZERO: Final = Estimate(0, 0)
ONE: Final = Estimate(1, 1)
UNKNOWN: Final = Estimate(0, MAX_UINT64)
