"""Field paths as links to the parent, formatted only when an error is reported.

Schema walkers visit every value of every object, and nearly always find no error. A path is None at
the root, else a pair of the parent's path and the last step: the index of an item, else the formatted step,
`.name` or `[key of a map]`.
"""

from __future__ import annotations

from typing import TypeAlias, Union

__all__ = ["FieldPath", "format_path", "format_steps"]

FieldPath: TypeAlias = Union["tuple[FieldPath, str | int]", None]


def format_steps(field_path: FieldPath) -> str:
    """Format a path with all its steps: `.spec.size`."""
    steps: list[str] = []
    while field_path is not None:
        field_path, step = field_path
        steps.append(step if isinstance(step, str) else f"[{step}]")
    return "".join(reversed(steps))


def format_path(field_path: FieldPath) -> str:
    """Format a path as the server does: `spec.size`, and `<nil>` for the root."""
    return format_steps(field_path).removeprefix(".") or "<nil>"
