"""What konverge logs, in a file instead of on the terminal, for commands that show something else there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["logs_in"]


@contextmanager
def logs_in(path: Path) -> Iterator[None]:
    """Write the logs of this process to a file while the block runs."""
    log, handler = logging.getLogger("konverge"), logging.FileHandler(path)
    before = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(handler)
        handler.close()
