"""The behavior of simulated containers, as a test, a file or an annotation describes it.

    Behavior(image="bad:*", never_ready=True)
    Behavior.parse("image=bad:*,never-ready")            # on a command line
    Behavior.from_dict({"image": "bad:*", "neverReady": True})   # in a file

Rules that hold here:

1. A behavior applies only to the containers that all of its selectors match: image, pod name and container
   name by shell patterns, labels by a selector.
2. Of several that match, each adds its fields; where two set the same field, the later one wins.
3. An annotation of the pod, `nodes.konverge.dev/never-ready: "true"`, wins over all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Final, get_type_hints

from konverge.objects import LabelSelector

__all__ = ["ANNOTATION", "Behavior", "Program"]

ANNOTATION: Final = "nodes.konverge.dev/"
_SELECTORS: Final = ("image", "name", "namespace", "container", "labels")


@dataclass(frozen=True, kw_only=True)
class Behavior:
    """What containers do. None leaves a field to other behaviors, then to its default.

    - `image`, `name` (of the pod), `namespace`, `container`: shell patterns; `labels`: a selector. "" matches all.
    - `start_after`: seconds to pull the image and start the container. Default: 0.
    - `ready_after`: seconds from the start until it is ready. Default: 0, or the initial delay of its readiness probe.
    - `never_ready`: it runs, and its readiness probe fails.
    - `runs_for`: seconds until it exits by itself. Default: never, or 1 s unless the restart policy is Always.
    - `exit_code`: its exit code then. Default: 0.
    - `crashes`: this many runs exit with `exit_code` (or 1) after `runs_for` (or 1 s); -1 for all runs.
    - `pull_fails`: its image cannot be pulled.
    - `stops_after`: seconds that it takes to stop; the grace period limits it. Default: 0.
    """

    image: str = ""
    name: str = ""
    namespace: str = ""
    container: str = ""
    labels: str = ""
    start_after: float | None = None
    ready_after: float | None = None
    never_ready: bool | None = None
    runs_for: float | None = None
    exit_code: int | None = None
    crashes: int | None = None
    pull_fails: bool | None = None
    stops_after: float | None = None

    def __post_init__(self) -> None:
        LabelSelector.parse(self.labels)
        for name in ("start_after", "ready_after", "runs_for", "stops_after"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} is a number of seconds, 0 or more, got {value!r}")
        if self.crashes is not None and self.crashes < -1:
            raise ValueError(f"crashes is a number of runs, 0 or more, or -1 for all of them, got {self.crashes}")
        if self.exit_code is not None and not 0 <= self.exit_code <= 255:
            raise ValueError(f"exit_code is a number from 0 to 255, got {self.exit_code}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Behavior:
        """Parse a mapping, as in a file. Keys are field names, in camelCase or with dashes or underscores.

        Raises: ValueError for an unknown key or an invalid value.
        """
        arguments: dict[str, Any] = {}
        for name, value in values.items():
            field_name = _NAMES.get(_plain(name))
            if field_name is None:
                raise ValueError(f"{name!r} is no field of a behavior: write one of {', '.join(sorted(_DASHED))}")
            arguments[field_name] = _value(field_name, value)
        return cls(**arguments)

    @classmethod
    def parse(cls, text: str) -> Behavior:
        """Parse a command-line option: "image=bad:*,never-ready,ready-after=5".

        Raises: ValueError for an invalid text, and for one that only has selectors.
        """
        parts = [part.strip().partition("=") for part in text.split(",") if part.strip()]
        for name, equals, value in parts:
            if equals and not value.strip():
                raise ValueError(f"{name}= has no value")
        found = cls.from_dict({name: value if equals else "true" for name, equals, value in parts})
        if all(getattr(found, name) is None for name in _EFFECTS):
            effects = ", ".join(name.replace("_", "-") for name in _EFFECTS)
            raise ValueError(f"{text!r} does not say what containers do: write one or more of {effects}")
        return found

    def matches(self, image: str, container: str, pod: PodInfo) -> bool:
        """Report whether it applies to a container of a pod."""
        pairs = (
            (self.image, image),
            (self.container, container),
            (self.name, pod.name),
            (self.namespace, pod.namespace),
        )
        if not all(not pattern or fnmatchcase(text, pattern) for pattern, text in pairs):
            return False
        return not self.labels or LabelSelector.parse(self.labels).matches(pod.labels)

    def merge(self, other: Behavior) -> Behavior:
        """Return this behavior with the fields that `other` sets."""
        values = {name: getattr(other, name) for name in _EFFECTS if getattr(other, name) is not None}
        return replace(self, **values)


@dataclass(frozen=True)
class PodInfo:
    """The properties of a pod that behaviors select by."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Program:
    """Behaviors in the order in which they were added; later ones win."""

    def __init__(self, behaviors: Iterable[Behavior] = ()) -> None:
        self._events = list(behaviors)

    def add(self, *behaviors: Behavior) -> None:
        """Add behaviors that win over those added before."""
        self._events.extend(behaviors)

    def clear(self) -> None:
        """Remove all behaviors."""
        self._events.clear()

    def behavior_of(self, image: str, container: str, pod: PodInfo) -> Behavior:
        """Return the behavior of a container, from all behaviors that match and the annotations.

        Raises: ValueError when an annotation of the pod is not a valid behavior.
        """
        found = Behavior()
        for one in self._events:
            if one.matches(image, container, pod):
                found = found.merge(one)
        values = {
            key.removeprefix(ANNOTATION): value for key, value in pod.annotations.items() if key.startswith(ANNOTATION)
        }
        return found.merge(Behavior.from_dict(values)) if values else found


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


_EFFECTS: Final = tuple(one.name for one in fields(Behavior) if one.name not in _SELECTORS)
_NAMES: Final = {_plain(one.name): one.name for one in fields(Behavior)}
_DASHED: Final = [one.name.replace("_", "-") for one in fields(Behavior)]
_TYPES: Final = get_type_hints(Behavior)


def _value(name: str, value: Any) -> Any:
    if name in _SELECTORS:
        return str(value)
    type_name = str(_TYPES[name])
    text = str(value).strip().lower()
    try:
        if "bool" in type_name:
            return {"true": True, "false": False}[text]
        return float(text) if "float" in type_name else int(text)
    except (KeyError, ValueError):
        kind = "true or false" if "bool" in type_name else "a number"
        raise ValueError(f"{name.replace('_', '-')} takes {kind}, got {value!r}") from None
