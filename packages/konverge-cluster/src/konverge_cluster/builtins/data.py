"""What is known about the built-in kinds, shipped as data and read when it is first asked for."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["load"]


def load(name: str) -> Any:
    """Read one of the files that `tools/generate_builtins.py` makes; callers keep what they read."""
    packed = files("konverge_cluster").joinpath("data", f"builtin-{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed))
