"""Whether to retry a request, and after which delay.

This module decides; it does not sleep. Rules:

1. A request that was certainly not processed may be retried: it was not sent (`TransportError.sent` is False), or the
   server rejected it unread (429).
2. A request that may have been processed (a cut connection, a 5xx) is retried only if it is idempotent: reads,
   server-side apply, writes with a version or uid as precondition. A create is not idempotent.
3. The server's Retry-After is a lower bound of the delay. If it is longer than `max_retry_after`, there is no retry.
4. A redirect is not retried: it would come again.
5. Without Retry-After the delay doubles from `base_delay` to `max_delay`, minus a random part of up to half of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from konverge.errors import KonvergeError, RedirectError, ServerError, TooManyRequests, TransportError

__all__ = ["RetryMode", "RetryPolicy"]


class RetryMode(Enum):
    """When a request may be retried."""

    NEVER = "never"  # the caller handles 429: an eviction that a disruption budget forbids
    UNPROCESSED = "unprocessed"  # only if it certainly was not processed: rule 1
    IDEMPOTENT = "idempotent"  # also if it may have been processed: rule 2


@dataclass(frozen=True)
class RetryPolicy:
    """The retries of a client: the defaults outlast the restart of an API server, about 20 s."""

    attempts: int = 8
    base_delay: float = 0.2
    max_delay: float = 8.0
    max_retry_after: float = 60.0

    def delay(self, error: KonvergeError, *, attempt: int, retry: RetryMode, random: Random) -> float | None:
        """Return the delay in seconds after the failure of this attempt (counted from 1), or None for no retry."""
        if attempt >= self.attempts or not _may_retry(error, retry):
            return None
        retry_after = _retry_after(error)
        if retry_after is not None and retry_after > self.max_retry_after:
            return None
        backoff = min(self.max_delay, self.base_delay * 2.0 ** (attempt - 1))
        jitter = backoff * random.random() / 2
        return backoff - jitter if retry_after is None else retry_after + jitter


def _retry_after(error: KonvergeError) -> float | None:
    return error.retry_after if isinstance(error, TooManyRequests | ServerError) else None


def _may_retry(error: KonvergeError, retry: RetryMode) -> bool:
    if retry is RetryMode.NEVER:
        return False
    match error:
        case RedirectError():
            return False
        case TooManyRequests():
            return True
        case TransportError():
            return retry is RetryMode.IDEMPOTENT or not error.sent
        case ServerError():
            # A plain 500 is often caused by the content of the request, so a retry would fail too.
            transient = error.status in (502, 503, 504) or error.retry_after is not None
            return retry is RetryMode.IDEMPOTENT and transient
    return False
