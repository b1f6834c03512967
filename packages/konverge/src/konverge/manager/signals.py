"""Signals: the first asks for an orderly end, the second ends the process as it would have without us."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

__all__ = ["stopped_by_signals"]

_log = logging.getLogger("konverge.manager")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def stopped_by_signals(stop: Callable[[], None]) -> AsyncGenerator[None]:
    """Call `stop` at the first SIGTERM or SIGINT; a second one kills. Afterwards signals do what they did before."""
    loop = asyncio.get_running_loop()

    def first(number: signal.Signals) -> None:
        _log.info("Stopping; a second signal ends the process at once", extra={"signal": number.name})
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, first, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
