"""Why a key was enqueued, readable by people."""

from __future__ import annotations

import asyncio

import msgspec

from konverge.objects import Key

__all__ = ["USER_CODE_ERRORS", "EnqueueReason"]

USER_CODE_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""What a plain function of the user may raise by mistake. None of these may end more than that call."""


class EnqueueReason(msgspec.Struct, frozen=True, gc=False):
    """One reason for a reconcile: the trigger, and the object and version that caused it.

    `what` is "added", "updated", "deleted", "resync", "timer" or "channel"; for the last two `kind` and `version` are
    "". `listed` is True if a list found the change.
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
        if self.what == "resync":
            return f"{self.trigger}: resync of {self.kind} {self.key}"
        found = " (found by a list)" if self.listed else ""
        return f"{self.trigger}: {self.kind} {self.key} {self.what} at version {self.version}{found}"
