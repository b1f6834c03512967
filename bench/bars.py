"""Bar charts as SVG, by hand: a chart is thirty lines, and a plotting library would be the largest dependency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["Bar", "bar_chart"]

_LEFT, _WIDTH, _RIGHT = 210, 360, 130
_ROW, _THICKNESS, _TOP = 28, 18, 34


@dataclass(frozen=True)
class Bar:
    """One bar, with the lowest and the highest value as a line on it."""

    name: str
    value: float
    low: float
    high: float
    is_own: bool = False


def bar_chart(title: str, unit: str, bars: Sequence[Bar]) -> str:
    """Return a chart with one horizontal bar for each contender."""
    most = max(one.high for one in bars) or 1.0
    height = _TOP + _ROW * len(bars) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" height="{height}"'
        ' font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="20" font-weight="bold">{escape(title)} ({escape(unit)})</text>',
    ]
    for number, one in enumerate(bars):
        parts += _bar(one, _TOP + _ROW * number, _WIDTH / most)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(one: Bar, top: int, scale: float) -> list[str]:
    middle, end = top + _THICKNESS // 2, _LEFT + one.value * scale
    low, high = _LEFT + one.low * scale, _LEFT + one.high * scale
    color = "#2563eb" if one.is_own else "#9ca3af"
    return [
        f'<text x="{_LEFT - 8}" y="{middle + 5}" text-anchor="end">{escape(one.name)}</text>',
        f'<rect x="{_LEFT}" y="{top}" width="{max(end - _LEFT, 1):.1f}" height="{_THICKNESS}" fill="{color}"/>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" stroke="#111827" stroke-width="1.5"/>',
        f'<text x="{max(end, high) + 8:.1f}" y="{middle + 5}">{one.value:,.4g}</text>',
    ]
