"""The work queue: keys that need a reconcile, with delays, priorities, backoff and a rate limit.

It does not depend on Kubernetes: a key is anything hashable. `WorkQueue` states what it promises.
"""

from konverge.queue.backoff import Backoff
from konverge.queue.heaps import Priority
from konverge.queue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialRateLimiter,
    MaxOfRateLimiter,
    NamespaceRateLimiter,
    RateLimiter,
)
from konverge.queue.rates import RateLimit
from konverge.queue.workqueue import QueueStats, WorkQueue

__all__ = [
    "Backoff",
    "BucketRateLimiter",
    "ItemExponentialRateLimiter",
    "MaxOfRateLimiter",
    "NamespaceRateLimiter",
    "Priority",
    "QueueStats",
    "RateLimit",
    "RateLimiter",
    "WorkQueue",
]
