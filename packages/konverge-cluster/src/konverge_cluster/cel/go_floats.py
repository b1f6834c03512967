"""Formatting of floats as in Go."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["go_float"]


def go_float(value: float) -> str:
    """Format a number like Go's %v: the shortest digits, with an exponent below 1e-4 and from 1e21 on."""
    if isinstance(value, int):
        return str(value)
    number = Decimal(repr(value)).normalize()
    power = number.adjusted()
    if -4 <= power < 21:
        return f"{number:f}"
    sign, digits, _ = number.as_tuple()
    text = "".join(map(str, digits))
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{fraction}e{power:+03d}"
