"""How long to wait after failures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

__all__ = ["Backoff"]


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The wait after a failure: `first` seconds, then `factor` times as long each time, up to `most`.

    Promises: a wait is never longer than this, and shorter by at most the share `jitter`, so that keys that failed
    together do not come back together.
    """

    first: float = 1.0
    factor: float = 2.0
    most: float = 300.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (self.first > 0 and math.isfinite(self.first)):
            raise ValueError(f"first={self.first}: write how many seconds to wait after one failure, such as 1.0")
        if not (self.factor >= 1 and math.isfinite(self.factor)):
            raise ValueError(
                f"factor={self.factor}: write by how much each wait is longer, such as 2.0 (1.0 for equal)"
            )
        if not (self.most >= self.first and math.isfinite(self.most)):
            raise ValueError(f"most={self.most}: write the longest wait, at least first={self.first}")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter={self.jitter}: write a share from 0.0 (none) to below 1.0")

    def delay(self, failures: int, random: Random) -> float:
        """Give the seconds to wait after so many failures in a row."""
        if failures < 1:
            raise ValueError(f"failures={failures}: the first failure is number 1")
        return self._steady(failures) * (1 - self.jitter * random.random())

    def _steady(self, failures: int) -> float:
        try:
            return min(self.most, self.first * self.factor ** (failures - 1))
        except OverflowError:
            return self.most
