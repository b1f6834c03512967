"""When to ask again, and after how long.

This module decides; it does not wait. Rules that hold here:

1. A request that certainly did nothing may be repeated: it never left (`TransportError.sent` is False), or the server
   turned it away unread (429).
2. A request that may have been carried out (a cut connection, a 5xx) is repeated only if carrying it out twice is the
   same as once: reads, server-side apply, writes with a version or uid as precondition. A create is not.
3. The server's Retry-After is a lower bound, never cut short. If it asks for more than `longest_wish`, we give up
   instead.
4. Otherwise waits double from `first` to `longest`, each shortened by a random part of up to half.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from konverge.errors import KonvergeError, ServerError, TooManyRequests, TransportError

__all__ = ["Repeat", "RetryPolicy"]


class Repeat(Enum):
    """When a request may be sent again."""

    NEVER = "never"  # the refusal itself is the answer: an eviction that a budget forbids
    UNREAD = "unread"  # when it certainly was not carried out: rule 1
    ANY = "any"  # also when it may have been: rule 2


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is: the defaults ride out the restart of an API server, about 20 s."""

    attempts: int = 8
    first: float = 0.2
    longest: float = 8.0
    longest_wish: float = 60.0

    def delay(self, error: KonvergeError, *, attempt: int, repeat: Repeat, random: Random) -> float | None:
        """Give the seconds to wait after this attempt (counted from 1) failed so, or None to give up."""
        if attempt >= self.attempts or not _may_repeat(error, repeat):
            return None
        wish = _wish(error)
        if wish is not None and wish > self.longest_wish:
            return None
        step = min(self.longest, self.first * 2.0 ** (attempt - 1))
        spread = step * random.random() / 2
        return step - spread if wish is None else wish + spread


def _wish(error: KonvergeError) -> float | None:
    return error.retry_after if isinstance(error, TooManyRequests | ServerError) else None


def _may_repeat(error: KonvergeError, repeat: Repeat) -> bool:
    if repeat is Repeat.NEVER:
        return False
    match error:
        case TooManyRequests():
            return True
        case TransportError():
            return repeat is Repeat.ANY or not error.sent
        case ServerError():
            # A plain 500 is often a verdict on what was sent, and would be the same again.
            passing = error.status in (502, 503, 504) or error.retry_after is not None
            return repeat is Repeat.ANY and passing
    return False
