"""Results: when a key is reconciled again after a successful reconcile."""

from __future__ import annotations

import math
from typing import Self

from msgspec import Struct

__all__ = ["Result"]


class Result(Struct, frozen=True):
    """The decision of a successful reconcile; a failed one raises an error instead.

    `Result.done()`: wait for the next change. `Result.requeue(after=30)`: reconcile again in 30 s, or earlier after a
    change. `Result.requeue()`: reconcile again at once; repeated, the delay grows as after errors.
    """

    after: float | None = None  # seconds; 0 means at once, and with backoff if repeated
    reason: str = ""

    @classmethod
    def done(cls) -> Self:
        """Wait for the next change."""
        return cls()

    @classmethod
    def requeue(cls, after: float = 0.0, *, reason: str = "") -> Self:
        """Reconcile again after a number of seconds; the reason is stored in the journal."""
        if not (isinstance(after, int | float) and 0 <= after < math.inf):
            raise ValueError(f"after is a number of seconds, 0 or more, got {after!r}")
        return cls(float(after), reason)

    def __str__(self) -> str:
        if self.after is None:
            return "done"
        text = f"requeue after {self.after:g} s" if self.after else "requeue"
        return f"{text} ({self.reason})" if self.reason else text
