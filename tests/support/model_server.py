"""A minimal model of an API server: every state of its history, in order, and nothing else.

Each change has the next version. A watch delivers what its selector matches; a list can show any version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from konverge.objects import Key

SELECTED = {"app": "web"}
NAMESPACES = ("shop", "bank")
NAMES = ("a", "b")


@dataclass(frozen=True)
class State:
    """One object at one version; if `gone`, the version at which it was deleted."""

    version: int
    key: Key
    uid: str
    value: int
    selected: bool
    owner: str
    writer: str = ""  # "" for a foreign write
    gone: bool = False

    def json(self) -> bytes:
        metadata = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "uid": self.uid,
            "resourceVersion": str(self.version),
            "labels": SELECTED if self.selected else {"app": "other"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Owner", "name": self.owner, "uid": self.owner}],
        }
        return json.dumps(
            {"apiVersion": "v1", "kind": "Widget", "metadata": metadata, "spec": {"value": self.value}}
        ).encode()


@dataclass(frozen=True)
class WatchEvent:
    """An event of a watch: an added or updated state, or a deleted one."""

    state: State
    gone: bool


@dataclass(frozen=True)
class Scope:
    """What a cache watches: a namespace, "" for all, and optionally a selector."""

    namespace: str
    selected_only: bool

    def contains(self, key: Key) -> bool:
        return not self.namespace or key.namespace == self.namespace

    def matches(self, state: State | None) -> bool:
        return (
            state is not None
            and not state.gone
            and self.contains(state.key)
            and (state.selected or not self.selected_only)
        )


class ModelServer:
    """The history of a few objects."""

    def __init__(self) -> None:
        self.version = 1
        self.history: list[State] = []

    def at(self, key: Key, version: int | None = None) -> State | None:
        """Return an object at a version, by default the current one; None when it does not exist."""
        version = self.version if version is None else version
        found = [state for state in self.history if state.key == key and state.version <= version]
        return found[-1] if found and not found[-1].gone else None

    def all_at(self, version: int, scope: Scope) -> dict[Key, State]:
        """Return the objects that a cache has after receiving everything up to a version."""
        states = [self.at(key, version) for key in sorted({state.key for state in self.history})]
        return {state.key: state for state in states if state is not None and scope.matches(state)}

    def create(self, key: Key, *, value: int, selected: bool, owner: str, writer: str = "") -> State:
        self.version += 1
        state = State(self.version, key, f"uid-{self.version}", value, selected, owner, writer)
        self.history.append(state)
        return state

    def change(self, key: Key, *, value: int, selected: bool, owner: str, writer: str = "") -> State:
        """Update an existing object; a write that changes nothing creates no version."""
        old = self.at(key)
        assert old is not None
        if (old.value, old.selected, old.owner) == (value, selected, owner):
            return old
        self.version += 1
        state = State(self.version, key, old.uid, value, selected, owner, writer)
        self.history.append(state)
        return state

    def delete(self, key: Key, *, writer: str = "") -> State:
        old = self.at(key)
        assert old is not None
        self.version += 1
        state = State(self.version, key, old.uid, old.value, old.selected, old.owner, writer, gone=True)
        self.history.append(state)
        return state

    def events_since(self, version: int, scope: Scope) -> list[WatchEvent]:
        """Return the events of a watch from a version on."""
        events = []
        for state in self.history:
            was_in = scope.matches(self.at(state.key, state.version - 1))
            is_in = scope.matches(state)
            if state.version > version and (is_in or was_in):
                events.append(WatchEvent(state, gone=not is_in))
        return events

    def tick(self) -> None:
        """Change another resource."""
        self.version += 1
