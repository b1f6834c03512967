"""Exponential backoff with jitter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

__all__ = ["Backoff"]


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The delay after a failure: `base_delay` seconds, multiplied by `factor` after each failure, up to `max_delay`.

    Promises: a delay is never longer than this, and shorter by at most the fraction `jitter`, so that keys that failed
    together are not retried together.
    """

    base_delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 300.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (self.base_delay > 0 and math.isfinite(self.base_delay)):
            raise ValueError(f"base_delay={self.base_delay}: write the seconds to wait after one failure, such as 1.0")
        if not (self.factor >= 1 and math.isfinite(self.factor)):
            raise ValueError(f"factor={self.factor}: write by how much each delay grows, such as 2.0 (1.0 for equal)")
        if not (self.max_delay >= self.base_delay and math.isfinite(self.max_delay)):
            raise ValueError(f"max_delay={self.max_delay}: write the longest delay, at least {self.base_delay}")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter={self.jitter}: write a fraction from 0.0 (none) to below 1.0")

    def delay(self, failures: int, random: Random) -> float:
        """Return the seconds to wait after this many failures in a row."""
        if failures < 1:
            raise ValueError(f"failures={failures}: the first failure is number 1")
        return self._without_jitter(failures) * (1 - self.jitter * random.random())

    def _without_jitter(self, failures: int) -> float:
        try:
            return min(self.max_delay, self.base_delay * self.factor ** (failures - 1))
        except OverflowError:
            return self.max_delay
