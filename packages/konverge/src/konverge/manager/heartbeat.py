"""Whether the main loop still turns, seen from the side thread, and who holds it up when it does not.

A handler that blocks (a sync HTTP call, `time.sleep`, a long computation) stops everything on the main loop. The lease
goes on in its own thread, and that is right for a while: a leader that is busy is no dead leader. But one that does
nothing for long must make room for another.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from konverge.manager.guard import Clock

__all__ = ["Heartbeat", "LoopWatch"]

_log = logging.getLogger("konverge.manager")

_EVERY: Final = 0.5
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OURS: Final = str(Path(__file__).parent.parent)


class Heartbeat:
    """The pulse of the main loop: `beat` runs there, every other method may be called from any thread."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None
        self._thread = 0

    async def beat(self) -> None:
        """Note twice a second that the loop turns; runs until it is cancelled."""
        self._thread = threading.get_ident()
        try:
            while True:
                self._last = self._clock()
                await asyncio.sleep(_EVERY)
        finally:
            self._last = None

    def age(self) -> float:
        """Give the seconds since the last beat, 0 when it does not beat at all."""
        last = self._last
        return 0.0 if last is None else max(0.0, self._clock() - last)

    def where(self) -> str:
        """Say which line the main thread is at: the innermost that is the author's, else the innermost."""
        frame = sys._current_frames().get(self._thread)
        if frame is None:
            return "an unknown place"
        found = _author_of(frame) or frame
        return f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_name}"


class LoopWatch:
    """Looks at the heartbeat from the side thread, warns, and gives up the lease.

    Promises: a main loop that is blocked for `slow_after` seconds is warned of once, with the handler that `blocking`
    names and the line it is at; after `give_up_after` seconds `give_up` is called, once. A process that was frozen as a
    whole is not taken for a blocked one.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        *,
        blocking: Callable[[], str],
        give_up: Callable[[str], None],
        slow_after: float = 5.0,
        give_up_after: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:
        if not 0 < slow_after <= give_up_after:
            raise ValueError(
                f"slow_after must be above 0 and at most give_up_after: {slow_after:g} against {give_up_after:g}"
            )
        self._heartbeat = heartbeat
        self._blocking = blocking
        self._give_up = give_up
        self._slow_after, self._give_up_after = slow_after, give_up_after
        self._clock = clock
        self._warned = self._gave_up = False

    async def run(self) -> None:
        """Look twice a second; runs until it is cancelled."""
        while True:
            before = self._clock()
            await asyncio.sleep(_EVERY)
            if self._clock() - before < _EVERY + 1:
                self.look()

    def look(self) -> None:
        """Look once."""
        if not (slow := self.slow()):
            self._warned = self._gave_up = False
            return
        if not self._warned:
            self._warned = True
            _log.warning("The main loop is blocked", extra={"why": slow})
        if not self._gave_up and (blocked := self.blocked()):
            self._gave_up = True
            _log.error("The main loop is blocked for too long, leading is given up", extra={"why": blocked})
            self._give_up(blocked)

    def slow(self) -> str:
        """Say who blocks the main loop, "" when it turns: for readiness."""
        return self._reason(self._slow_after)

    def blocked(self) -> str:
        """Say who has blocked the main loop for so long that the lease is given up: for liveness."""
        return self._reason(self._give_up_after)

    def _reason(self, limit: float) -> str:
        age = self._heartbeat.age()
        if age < limit:
            return ""
        handler = self._blocking() or "something"
        return f"the main loop is blocked for {age:.0f} s by {handler}, at {self._heartbeat.where()}"


def _author_of(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith((*_LIBRARIES, _OURS, "<")):
        frame = frame.f_back
    return frame
