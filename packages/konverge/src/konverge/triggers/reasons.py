"""Why a key was woken, in words for people."""

from __future__ import annotations

import asyncio

import msgspec

from konverge.objects import Key

__all__ = ["AUTHORS_ERRORS", "EnqueueReason"]

AUTHORS_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""What a plain function of an author may raise by mistake. None of it may end anything but that call."""


class EnqueueReason(msgspec.Struct, frozen=True, gc=False):
    """One reason for a reconcile: which trigger, and which object at which version made it.

    `what` is "added", "changed", "removed", "timer" or "channel"; of the last two `kind` and `version` are "". `listed`
    says that the change was found by a list.
    """

    trigger: str
    kind: str
    key: Key
    version: str
    what: str
    listed: bool = False

    def __str__(self) -> str:
        if not self.kind:
            return self.trigger
        found = " (found by a list)" if self.listed else ""
        return f"{self.trigger}: {self.kind} {self.key} {self.what} at version {self.version}{found}"
