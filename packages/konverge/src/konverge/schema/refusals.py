"""How a type that cannot become a CRD is refused: always with the wire path, always with what to write instead."""

from __future__ import annotations

__all__ = ["refused_type", "refused_value"]


def refused_type(path: str, what: str, instead: str) -> TypeError:
    """Make the error for a type that has no structural schema."""
    return TypeError(_message(path, what, instead))


def refused_value(path: str, what: str, instead: str) -> ValueError:
    """Make the error for a name, default, bound or path that the API server would refuse."""
    return ValueError(_message(path, what, instead))


def _message(path: str, what: str, instead: str) -> str:
    return f"{what}, at {path} ({instead})" if path else f"{what} ({instead})"
