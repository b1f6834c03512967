"""The garbage collector of a process that has started and will run for long."""

from __future__ import annotations

import gc

__all__ = ["collect_less"]

_YOUNG_OBJECTS = 10_000
"""New objects, less deleted ones, after which the collector looks for cycles among them; the default is 700."""


def collect_less() -> None:
    """Make the garbage collector run less often, and examine less.

    Objects of the start-up live until the end: frozen, they are not examined again. Reconciles create few cycles. A
    collector that is off stays off, and a higher threshold stays as it is.
    """
    gc.freeze()
    young, *older = gc.get_threshold()
    if young:
        gc.set_threshold(max(young, _YOUNG_OBJECTS), *older)
