"""How containers behave that nobody runs: what a test, a file or an annotation says about them.

    Behavior(image="bad:*", never_ready=True)
    Behavior.parse("image=bad:*,never-ready")            # on a command line
    Behavior.from_dict({"image": "bad:*", "neverReady": True})   # in a file

Rules that hold here:

1. A behavior says something only about the containers that all of its selectors fit: image, pod name and container
   name by shell patterns, labels by a selector.
2. Of several that fit, each adds what it says; where two say something about the same, the later one counts.
3. An annotation of the pod, `nodes.konverge.dev/never-ready: "true"`, counts most.
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
    """What containers do; None leaves it to others, and in the end to what is usual.

    - `image`, `name` (of the pod), `namespace`, `container`: shell patterns; `labels`: a selector. "" fits all.
    - `start_after`: seconds that the image and the container take. Usual: 0.
    - `ready_after`: seconds from the start until it is ready. Usual: 0, or what its readiness probe waits first.
    - `never_ready`: it runs, and its readiness probe fails.
    - `runs_for`: seconds until it ends by itself. Usual: for ever, or 1 s where the pod is not restarted always.
    - `exit_code`: how it ends then. Usual: 0.
    - `crashes`: so many runs end with `exit_code` (or 1) after `runs_for` (or 1 s); -1 for all of them.
    - `pull_fails`: its image cannot be pulled.
    - `stops_after`: seconds that it takes to end when it is told to; the grace period limits it. Usual: 0.
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
    def from_dict(cls, wire: Mapping[str, Any]) -> Behavior:
        """Read one of a file: the names are those of the fields, in camelCase or with dashes or underscores.

        Raises: ValueError for a name that is none, or a value that does not fit it.
        """
        given: dict[str, Any] = {}
        for name, value in wire.items():
            known = _NAMES.get(_plain(name))
            if known is None:
                raise ValueError(f"{name!r} is no part of a behavior: write one of {', '.join(sorted(_DASHED))}")
            given[known] = _value(known, value)
        return cls(**given)

    @classmethod
    def parse(cls, text: str) -> Behavior:
        """Read one of a command line: "image=bad:*,never-ready,ready-after=5".

        Raises: ValueError for a text that is none, and for one that says nothing of what containers do.
        """
        parts = [part.strip().partition("=") for part in text.split(",") if part.strip()]
        for name, equals, value in parts:
            if equals and not value.strip():
                raise ValueError(f"nothing follows {name}=")
        found = cls.from_dict({name: value if equals else "true" for name, equals, value in parts})
        if all(getattr(found, name) is None for name in _EFFECTS):
            effects = ", ".join(name.replace("_", "-") for name in _EFFECTS)
            raise ValueError(f"{text!r} does not say what containers do: write one or more of {effects}")
        return found

    def fits(self, image: str, container: str, pod: PodInfo) -> bool:
        """Tell whether it is about a container of a pod."""
        pairs = (
            (self.image, image),
            (self.container, container),
            (self.name, pod.name),
            (self.namespace, pod.namespace),
        )
        if not all(not pattern or fnmatchcase(text, pattern) for pattern, text in pairs):
            return False
        return not self.labels or LabelSelector.parse(self.labels).matches(pod.labels)

    def under(self, other: Behavior) -> Behavior:
        """Give this one, and what another says over it."""
        said = {name: getattr(other, name) for name in _EFFECTS if getattr(other, name) is not None}
        return replace(self, **said)


@dataclass(frozen=True)
class PodInfo:
    """What behaviors know a pod by."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Program:
    """Behaviours in the order in which they were told."""

    def __init__(self, behaviors: Iterable[Behavior] = ()) -> None:
        self._events = list(behaviors)

    def add(self, *behaviors: Behavior) -> None:
        """Let these count too, over what was told before."""
        self._events.extend(behaviors)

    def clear(self) -> None:
        """Forget all that was told."""
        self._events.clear()

    def of(self, image: str, container: str, pod: PodInfo) -> Behavior:
        """Give all that is said about a container.

        Raises: ValueError when an annotation of the pod says something that is no behavior.
        """
        found = Behavior()
        for one in self._events:
            if one.fits(image, container, pod):
                found = found.under(one)
        said = {
            key.removeprefix(ANNOTATION): value for key, value in pod.annotations.items() if key.startswith(ANNOTATION)
        }
        return found.under(Behavior.from_dict(said)) if said else found


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


_EFFECTS: Final = tuple(one.name for one in fields(Behavior) if one.name not in _SELECTORS)
_NAMES: Final = {_plain(one.name): one.name for one in fields(Behavior)}
_DASHED: Final = [one.name.replace("_", "-") for one in fields(Behavior)]
_TYPES: Final = get_type_hints(Behavior)


def _value(name: str, value: Any) -> Any:
    if name in _SELECTORS:
        return str(value)
    wanted = str(_TYPES[name])
    text = str(value).strip().lower()
    try:
        if "bool" in wanted:
            return {"true": True, "false": False}[text]
        return float(text) if "float" in wanted else int(text)
    except (KeyError, ValueError):
        kind = "true or false" if "bool" in wanted else "a number"
        raise ValueError(f"{name.replace('_', '-')} takes {kind}, got {value!r}") from None
