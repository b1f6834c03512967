"""An API server as small as a model can be: every state that ever was, in order, and nothing else.

Each change has the next version. A watcher is told what its selector lets through; a list shows any version at all.
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
    """One object at one version, or, when `gone`, the version at which it went."""

    version: int
    key: Key
    uid: str
    value: int
    selected: bool
    owner: str
    writer: str = ""  # "" for somebody else
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
    """What a watch says: a state that came or changed, or one that went."""

    state: State
    gone: bool


@dataclass(frozen=True)
class Scope:
    """What a cache looks at: a namespace, "" for all, and perhaps only what is selected."""

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
        """Give an object as it was at a version, now when none is given; None where it is not there."""
        version = self.version if version is None else version
        found = [state for state in self.history if state.key == key and state.version <= version]
        return found[-1] if found and not found[-1].gone else None

    def all_at(self, version: int, scope: Scope) -> dict[Key, State]:
        """Give what a cache holds when it has seen everything up to a version."""
        states = [self.at(key, version) for key in sorted({state.key for state in self.history})]
        return {state.key: state for state in states if state is not None and scope.matches(state)}

    def create(self, key: Key, *, value: int, selected: bool, owner: str, writer: str = "") -> State:
        self.version += 1
        state = State(self.version, key, f"uid-{self.version}", value, selected, owner, writer)
        self.history.append(state)
        return state

    def change(self, key: Key, *, value: int, selected: bool, owner: str, writer: str = "") -> State:
        """Write an object that is there; a write that changes nothing makes no version."""
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
        """Give what a watch tells from a version on."""
        told = []
        for state in self.history:
            was_in = scope.matches(self.at(state.key, state.version - 1))
            is_in = scope.matches(state)
            if state.version > version and (is_in or was_in):
                told.append(WatchEvent(state, gone=not is_in))
        return told

    def tick(self) -> None:
        """Let something happen to other resources."""
        self.version += 1
