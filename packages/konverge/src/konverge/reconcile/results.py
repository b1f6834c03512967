"""Results: what shall happen to a key after its reconcile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

__all__ = ["Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """The decision of a reconcile that succeeded; an error is raised instead.

    `Result.done()`: nothing until something changes. `Result.requeue(after=30)`: once more in 30 s, or earlier when
    something changes. `Result.requeue()`: soon; asked for over and over, the wait grows as it does after errors.
    """

    after: float | None = None  # seconds; 0 is soon
    reason: str = ""

    @classmethod
    def done(cls) -> Self:
        """Wait for the next change."""
        return cls()

    @classmethod
    def requeue(cls, after: float = 0.0, *, reason: str = "") -> Self:
        """Reconcile once more, `after` so many seconds; the reason is kept in the journal."""
        if not (isinstance(after, int | float) and 0 <= after < math.inf):
            raise ValueError(f"after is a number of seconds, 0 or more, got {after!r}")
        return cls(float(after), reason)

    def __str__(self) -> str:
        if self.after is None:
            return "done"
        when = f"again after {self.after:g} s" if self.after else "again"
        return f"{when} ({self.reason})" if self.reason else when
