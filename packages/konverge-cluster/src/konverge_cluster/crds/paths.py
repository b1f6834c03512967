"""Places inside an object, kept as links to the parent and written out only when somebody has to be told.

The walkers of a schema visit every value of every object, and nearly always have nothing to say. A place is None at
the root, else a pair of the parent's place and the last step: the index of an item, else the step as it is written,
`.name` or `[key of a map]`.
"""

from __future__ import annotations

from typing import TypeAlias, Union

__all__ = ["Place", "steps_of", "text_of"]

Place: TypeAlias = Union["tuple[Place, str | int]", None]


def steps_of(place: Place) -> str:
    """Write a place with all its steps as they are: `.spec.size`."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(step if isinstance(step, str) else f"[{step}]")
    return "".join(reversed(steps))


def text_of(place: Place) -> str:
    """Write a place as the server does in field paths: `spec.size`, and `<nil>` for the root."""
    return steps_of(place).removeprefix(".") or "<nil>"
