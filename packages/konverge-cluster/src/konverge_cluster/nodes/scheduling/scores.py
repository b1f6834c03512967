"""Arithmetic of scores."""

from __future__ import annotations

from collections.abc import Mapping

from konverge_cluster.nodes.scheduling.snapshot import MAX_SCORE

__all__ = ["normalize", "spread_range"]


def normalize(counts: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Scale counts so that the largest becomes MAX_SCORE; with `reverse` the largest becomes 0."""
    largest = max(counts.values(), default=0)
    scaled = {name: MAX_SCORE * count // largest if largest else 0 for name, count in counts.items()}
    return {name: MAX_SCORE - score for name, score in scaled.items()} if reverse else scaled


def spread_range(counts: Mapping[str, int]) -> dict[str, int]:
    """Scale counts, which may be negative, so that the smallest becomes 0 and the largest MAX_SCORE."""
    low, high = min(counts.values(), default=0), max(counts.values(), default=0)
    return {name: MAX_SCORE * (count - low) // (high - low) if high > low else 0 for name, count in counts.items()}
