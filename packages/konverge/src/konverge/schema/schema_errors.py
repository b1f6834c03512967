"""Errors for types that cannot become a CRD: always with the wire path and with what to write instead."""

from __future__ import annotations

__all__ = ["invalid_value", "unsupported_type"]


def unsupported_type(path: str, what: str, suggestion: str) -> TypeError:
    """Return the error for a type that has no structural schema."""
    return TypeError(_message(path, what, suggestion))


def invalid_value(path: str, what: str, suggestion: str) -> ValueError:
    """Return the error for a name, default, bound or path that the API server would reject."""
    return ValueError(_message(path, what, suggestion))


def _message(path: str, what: str, suggestion: str) -> str:
    return f"{what}, at {path} ({suggestion})" if path else f"{what} ({suggestion})"
