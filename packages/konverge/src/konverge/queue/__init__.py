"""WAITING: the queue of keys that need a reconcile, with delays, priorities, back-off and a rate limit.

It knows nothing of Kubernetes: a key is anything hashable. What it promises is written at `WorkQueue`.
"""

from konverge.queue.backoff import Backoff
from konverge.queue.lines import Priority
from konverge.queue.rates import RateLimit
from konverge.queue.workqueue import QueueStats, WorkQueue

__all__ = ["Backoff", "Priority", "QueueStats", "RateLimit", "WorkQueue"]
