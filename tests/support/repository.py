"""Where things are in the repository, for tests of every package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DATA", "ROOT"]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
