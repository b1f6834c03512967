"""Signals: the first one stops the process in order, the second one ends it at once."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

__all__ = ["stop_on_signals"]

_log = logging.getLogger("konverge.manager")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def stop_on_signals(stop: Callable[[], None]) -> AsyncGenerator[None]:
    """Call `stop` on the first SIGTERM or SIGINT; a second one kills. On exit the former handlers are restored."""
    loop = asyncio.get_running_loop()

    def stop_once(number: signal.Signals) -> None:
        _log.info("stopping; a second signal ends the process at once", extra={"signal": number.name})
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop()

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop_once, number)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
