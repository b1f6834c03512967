"""How many events the built-in controllers and the simulated nodes may write."""

from __future__ import annotations

from typing import Final

from konverge.reconcile import EventLimits

__all__ = ["EVENT_LIMITS"]

EVENT_LIMITS: Final = EventLimits(total_burst=1000, total_interval=0.05)
"""As in Kubernetes, events of one object do not crowd out those of others; a total limit protects the API server only
from thousands of events at once."""
