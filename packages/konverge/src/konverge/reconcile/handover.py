"""Handing fields over to another manager, without a moment in which nobody owns them.

A field that is left out of an apply is removed, or falls back to its default, unless another manager owns it too. So
the other manager is made an owner first, by an apply in its name that says just what the object holds there already.
That changes no value. Whoever then sets the field to something else becomes its only owner, as always.
"""

from __future__ import annotations

import json
import re
from typing import Any

from konverge.objects import Unstructured
from konverge.reconcile.owned_fields import FieldTree, fields_of, pick

__all__ = ["part_to_hand_over"]

_STEP = re.compile(r'\.(?P<field>[^.\[\]]+)|\["(?P<quoted>[^"]+)"\]|\[(?P<keys>[^\]"=]+=(?:"[^"]*"|[^\]"])+)\]')
_KEY = re.compile(r'\s*(\w+)=("[^"]*"|[^,"]+)\s*(?:,|$)')


def part_to_hand_over(live: dict[str, Any], path: str, *, manager: str) -> Unstructured | None:
    """Give the object that holds just what a manager owns at a path or below; None when it owns nothing there.

    Raises: ValueError when the path is none.
    """
    owned: FieldTree = fields_of(live, manager) or {}
    elements: list[str] = []
    for wanted in _steps(path):
        element = next((one for one in owned if _matches(one, wanted)), None)
        if element is None:
            return None
        elements.append(element)
        owned = owned[element]
    tree = owned
    for element in reversed(elements):
        tree = {element: tree}
    metadata = {name: live["metadata"][name] for name in ("name", "namespace", "uid") if name in live["metadata"]}
    part: dict[str, Any] = pick(tree, live)
    inner = part.pop("metadata", {})
    return Unstructured(
        {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {**inner, **metadata}, **part}
    )


def _steps(path: str) -> list[str | dict[str, Any]]:
    """Read a path as names of fields and keys of list items."""
    steps: list[str | dict[str, Any]] = []
    end = 0
    for found in _STEP.finditer(path):
        if found.start() != end:
            break
        end = found.end()
        steps.append(_keys(found["keys"]) if found["keys"] else found["field"] or found["quoted"])
    if not steps or end != len(path):
        raise ValueError(
            f"{path!r} is no wire path: write one such as '.spec.replicas' or '.spec.ports[name=\"http\"].nodePort'"
        )
    return steps


def _keys(text: str) -> dict[str, Any]:
    return {name: json.loads(value) if value[0] == '"' else _scalar(value) for name, value in _KEY.findall(text)}


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _matches(element: str, wanted: str | dict[str, Any]) -> bool:
    if isinstance(wanted, str):
        return element == "f:" + wanted
    return element[:2] == "k:" and json.loads(element[2:]) == wanted
