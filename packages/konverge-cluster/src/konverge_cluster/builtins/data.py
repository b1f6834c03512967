"""Data files about the built-in kinds, loaded on first use."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["load"]


def load(name: str) -> Any:
    """Load a file that `tools/generate_builtins.py` wrote. The result is not cached here; callers cache it."""
    packed = files("konverge_cluster").joinpath("data", f"builtin-{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed))
