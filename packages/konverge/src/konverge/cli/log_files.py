"""Logs in a file instead of on the terminal, for commands that print something else there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["log_to_file"]


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Write the logs of this process to a file during the block."""
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
