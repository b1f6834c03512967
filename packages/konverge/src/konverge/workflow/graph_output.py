"""Drawings of a workflow: components with their dependencies, and phases with their transitions.

Mermaid is for pages that render it (GitHub does), SVG for everything else. With the status of a live object components
and the phase are coloured. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import combinations
from math import cos, pi, sin
from typing import Any

from konverge.workflow.graphs import layers_of
from konverge.workflow.phases import Phases
from konverge.workflow.workflow import Workflow

__all__ = ["render_mermaid", "render_svg"]

_COLORS = {
    "Ready": "#b7e1cd",
    "Creating": "#cfe2f3",
    "Updating": "#cfe2f3",
    "Waiting": "#eeeeee",
    "Removing": "#eeeeee",
    "Degraded": "#fce5cd",
    "Failed": "#f4c7c3",
}
_PLAIN = "#ffffff"
_CURRENT = "#fff2cc"
_BOX_WIDTH, _BOX_HEIGHT, _GAP, _MARGIN = 150, 40, 50, 20


@dataclass(frozen=True)
class _Node:
    name: str
    label: str
    color: str


def render_mermaid(workflow: Workflow[Any], status: Any = None) -> str:
    """Return the components and the phases as two Mermaid diagrams, each in a code fence."""
    return f"```mermaid\n{_components(workflow, status)}```\n\n```mermaid\n{_phases(workflow, status)}```\n"


def _components(workflow: Workflow[Any], status: Any) -> str:
    lines = ["flowchart BT"]
    for node in _nodes(workflow, status):
        lines.append(f'    {node.name}["{node.label}"]')
        if node.color != _PLAIN:
            lines.append(f"    style {node.name} fill:{node.color}")
    for component in workflow.components:
        lines += [f"    {component.name} --> {need}" for need in component.needs]
        lines += [f"    {component.name} -.-> {other}" for other in component.after]
    return "\n".join(lines) + "\n"


def _phases(workflow: Workflow[Any], status: Any) -> str:
    phases = workflow.phases
    lines = ["stateDiagram-v2", f"    [*] --> {phases.initial}"]
    for before, following in phases.transitions.items():
        lines += [f"    {before} --> {after}" for after in phases.transitions if after in following]
        lines += [] if following else [f"    {before} --> [*]"]
    if status is not None:
        lines += [f"    classDef current fill:{_CURRENT}", f"    class {status.phase} current"]
    return "\n".join(lines) + "\n"


def _nodes(workflow: Workflow[Any], status: Any) -> Iterable[_Node]:
    live = {one.name: one for one in status.components} if status is not None else {}
    for component in workflow.components:
        found = live.get(component.name)
        label = component.name if found is None else f"{component.name}: {found.phase}"
        yield _Node(component.name, label, _PLAIN if found is None else _COLORS[found.phase])


def render_svg(workflow: Workflow[Any], status: Any = None) -> str:
    """Return the components and the phases as an SVG picture.

    What a component needs is below it. Phases are on a circle below the components: the first one has a thick border,
    final ones have a dashed one, and a line with two heads is a transition and its reverse.
    """
    layers = layers_of(workflow.order)
    radius = _radius(workflow.phases)
    width = max(*(len(layer) * (_BOX_WIDTH + _GAP) - _GAP for layer in layers), 2 * radius + _BOX_WIDTH) + 2 * _MARGIN
    height = len(layers) * (_BOX_HEIGHT + _GAP) - _GAP + 2 * _MARGIN
    places = dict(_places(layers, width, height))
    nodes = {node.name: node for node in _nodes(workflow, status)}
    whole = height + 2 * radius + _BOX_HEIGHT + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" font-family="sans-serif" '
        'font-size="13" text-anchor="middle">',
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z"/></marker></defs>',
        *_arrows(workflow.needs, places),
        *_arrows({one.name: one.after for one in workflow.components}, places, dashed=True),
        *(_rectangle(nodes[name], *place) for name, place in places.items()),
        *_phase_circle(workflow.phases, status, width // 2, height + radius + _BOX_HEIGHT // 2),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _radius(phases: Phases[Any]) -> int:
    return max(_BOX_WIDTH, len(phases.transitions) * _BOX_WIDTH // 6)  # so that neighbours do not overlap


def _phase_circle(phases: Phases[Any], status: Any, middle: int, height: int) -> Iterable[str]:
    """Yield the phases around a point, in the order of their declaration, and the transitions between them."""
    radius, count = _radius(phases), len(phases.transitions)
    turns = [2 * pi * position / count for position in range(count)]
    names = list(phases.transitions)
    centers = {
        name: (middle + round(radius * sin(turn)), height - round(radius * cos(turn)))
        for name, turn in zip(names, turns, strict=True)
    }
    for one, other in combinations(names, 2):
        forth, back = other in phases.transitions[one], one in phases.transitions[other]
        if forth or back:
            heads = (' marker-start="url(#arrow)"' if back else "") + (' marker-end="url(#arrow)"' if forth else "")
            yield f'<path d="{_line(centers[one], centers[other])}" stroke="gray"{heads}/>'
    for name, (left, top) in centers.items():
        current = status is not None and status.phase == name
        border = ' stroke-width="3"' if name == phases.initial else ""
        border += "" if phases.transitions[name] else ' stroke-dasharray="4"'
        node = _Node(name, name, _CURRENT if current else _PLAIN)
        yield _rectangle(node, left - _BOX_WIDTH // 2, top - _BOX_HEIGHT // 2, border)


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the line between the borders of two boxes with these centers."""
    across, down = end[0] - start[0], end[1] - start[1]
    share = min(_BOX_WIDTH / 2 / abs(across) if across else 1, _BOX_HEIGHT / 2 / abs(down) if down else 1)
    across, down = round(across * share), round(down * share)
    return f"M{start[0] + across} {start[1] + down}L{end[0] - across} {end[1] - down}"


def _places(layers: list[list[str]], width: int, height: int) -> Iterable[tuple[str, tuple[int, int]]]:
    """Yield the upper left corner of each component, the first layer at the bottom."""
    for level, layer in enumerate(layers):
        left = (width - len(layer) * (_BOX_WIDTH + _GAP) + _GAP) // 2
        top = height - _MARGIN - _BOX_HEIGHT - level * (_BOX_HEIGHT + _GAP)
        for position, name in enumerate(layer):
            yield name, (left + position * (_BOX_WIDTH + _GAP), top)


def _arrows(
    needs: Mapping[str, Iterable[str]], places: Mapping[str, tuple[int, int]], *, dashed: bool = False
) -> Iterable[str]:
    dashes = ' stroke-dasharray="5"' if dashed else ""
    for name, required in needs.items():
        for need in required:
            (left, top), (left_below, top_below) = places[name], places[need]
            start = f"{left + _BOX_WIDTH // 2} {top + _BOX_HEIGHT}"
            end = f"{left_below + _BOX_WIDTH // 2} {top_below}"
            yield f'<path d="M{start}L{end}" stroke="black"{dashes} marker-end="url(#arrow)"/>'


def _rectangle(node: _Node, left: int, top: int, border: str = "") -> str:
    shape = f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" fill="{node.color}" '
    text = f'<text x="{left + _BOX_WIDTH // 2}" y="{top + _BOX_HEIGHT // 2 + 5}">{escape(node.label)}</text>'
    return f'{shape}stroke="black"{border}/>{text}'
