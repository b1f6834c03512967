"""Recursion over syntax trees: they may be 250 levels deep, and each level takes several frames of Python's stack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["deep_recursion"]

_FRAMES: Final = 5000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow more frames than by default. Calls between Python functions do not use the stack of the process."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
