"""Hand fields over to another manager, so that they always have an owner.

A field that is left out of an apply is removed, or reset to its default, unless another manager owns it too. So the
other manager becomes an owner first, with an apply in its name of the current values. That changes no value. A client
that then sets the field to another value becomes its only owner, as usual.
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
    """Return an object with only the fields that a manager owns at a path or below, or None if it owns none.

    Raises: ValueError when the path is not a wire path.
    """
    owned: FieldTree = fields_of(live, manager) or {}
    elements: list[str] = []
    for step in _parse_path(path):
        element = next((one for one in owned if _matches(one, step)), None)
        if element is None:
            return None
        elements.append(element)
        owned = owned[element]
    tree = owned
    for element in reversed(elements):
        tree = {element: tree}
    metadata = {name: live["metadata"][name] for name in ("name", "namespace", "uid") if name in live["metadata"]}
    part: dict[str, Any] = pick(tree, live)
    owned_metadata = part.pop("metadata", {})
    return Unstructured(
        {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {**owned_metadata, **metadata}, **part}
    )


def _parse_path(path: str) -> list[str | dict[str, Any]]:
    """Return a path as names of fields and keys of list items."""
    steps: list[str | dict[str, Any]] = []
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        steps.append(_keys(match["keys"]) if match["keys"] else match["field"] or match["quoted"])
    if not steps or end != len(path):
        raise ValueError(
            f"{path!r} is not a wire path: write one such as '.spec.replicas' or '.spec.ports[name=\"http\"].nodePort'"
        )
    return steps


def _keys(text: str) -> dict[str, Any]:
    return {name: json.loads(value) if value[0] == '"' else _scalar(value) for name, value in _KEY.findall(text)}


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _matches(element: str, step: str | dict[str, Any]) -> bool:
    if isinstance(step, str):
        return element == "f:" + step
    return element[:2] == "k:" and json.loads(element[2:]) == step
