"""The heartbeat of the main loop, checked from the lease thread, and which handler blocks the loop.

A handler that blocks (a synchronous HTTP call, `time.sleep`, a long computation) stops everything on the main loop. The
lease is renewed in its own thread meanwhile. For a while that is right: a slow leader is not a dead leader. But a
leader whose loop is blocked for long must let another replica lead.
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

from konverge.manager.write_fence import Clock

__all__ = ["Heartbeat", "LoopMonitor"]

_log = logging.getLogger("konverge.manager")

_INTERVAL: Final = 0.5
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_KONVERGE: Final = str(Path(__file__).parent.parent)


class Heartbeat:
    """The heartbeat of the main loop: `run` runs there, any thread may call the other methods."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None
        self._thread = 0

    async def run(self) -> None:
        """Record a heartbeat twice a second until cancelled."""
        self._thread = threading.get_ident()
        try:
            while True:
                self._last = self._clock()
                await asyncio.sleep(_INTERVAL)
        finally:
            self._last = None

    def age(self) -> float:
        """Return the seconds since the last heartbeat, 0 when `run` does not run."""
        last = self._last
        return 0.0 if last is None else max(0.0, self._clock() - last)

    def location(self) -> str:
        """Return the line that the main thread executes: the innermost of the author's code, else the innermost."""
        frame = sys._current_frames().get(self._thread)
        if frame is None:
            return "an unknown location"
        found = _author_frame(frame) or frame
        return f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_name}"


class LoopMonitor:
    """Checks the heartbeat from the lease thread, logs a warning, and steps down.

    Promises: a main loop that is blocked for `warn_after` seconds is logged once, with the handler that
    `active_handlers` returns and the line that it executes; after `step_down_after` seconds `step_down` is called,
    once. A process that was frozen as a whole does not count as blocked.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        *,
        active_handlers: Callable[[], str],
        step_down: Callable[[str], None],
        warn_after: float = 5.0,
        step_down_after: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:
        if not 0 < warn_after <= step_down_after:
            raise ValueError(
                f"warn_after must be above 0 and at most step_down_after: {warn_after:g} against {step_down_after:g}"
            )
        self._heartbeat = heartbeat
        self._active_handlers = active_handlers
        self._step_down = step_down
        self._warn_after, self._step_down_after = warn_after, step_down_after
        self._clock = clock
        self._warned = self._stepped_down = False

    async def run(self) -> None:
        """Check twice a second until cancelled."""
        while True:
            before = self._clock()
            await asyncio.sleep(_INTERVAL)
            if self._clock() - before < _INTERVAL + 1:
                self.check()

    def check(self) -> None:
        """Check the heartbeat once."""
        if not (slow := self.slow_reason()):
            self._warned = self._stepped_down = False
            return
        if not self._warned:
            self._warned = True
            _log.warning("event loop blocked", extra={"reason": slow})
        if not self._stepped_down and (blocked := self.not_live_reason()):
            self._stepped_down = True
            _log.error("event loop blocked for too long, stepping down", extra={"reason": blocked})
            self._step_down(blocked)

    def slow_reason(self) -> str:
        """Return what has blocked the main loop for long enough to be logged, "" otherwise."""
        return self._reason(self._warn_after)

    def not_live_reason(self) -> str:
        """Return what has blocked the main loop for so long that the lease is given up, "" otherwise."""
        return self._reason(self._step_down_after)

    def _reason(self, limit: float) -> str:
        age = self._heartbeat.age()
        if age < limit:
            return ""
        handlers = self._active_handlers() or "an unknown handler"
        return f"the event loop is blocked for {age:.0f} s by {handlers}, at {self._heartbeat.location()}"


def _author_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith((*_LIBRARIES, _KONVERGE, "<")):
        frame = frame.f_back
    return frame
