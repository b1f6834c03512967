"""Mappers: which keys an event enqueues. They read as directions: `to_owner(WebApp)`.

For an update, both the old and the new state are mapped: the key that an object referred to before and the key that it
refers to now are both enqueued.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from konverge.cache import Entry, Event
from konverge.errors import DecodeError
from konverge.objects import Key, Kind, OwnerReference, Resource, Unstructured, kind_of, split_api_version

__all__ = ["Mapper", "to_keys", "to_owner", "to_self"]

_log = logging.getLogger("konverge.triggers")

T = TypeVar("T")

Mapper: TypeAlias = Callable[[Event], Iterable[Key]]
"""Returns the keys that an event enqueues; a key that it returns twice is enqueued once."""


def to_self() -> Mapper:
    """Map an object to its own key."""
    return _ToSelf()


def to_owner(kind: type[Resource] | Kind, *, controller_only: bool = True) -> Mapper:
    """Map an object to its owner of a kind, by its owner references.

    References match by group and kind, in any version; `controller_only` ignores owners that are not its controller.
    """
    return _ToOwner(kind_of(kind), controller_only)


def to_keys(function: Callable[[T], Iterable[Key]], type_: type[T] | Kind) -> Mapper:
    """Map an object to the keys that a function returns; the function receives its own copy, decoded into the type.

    If a state does not match the type, or the function fails on it, the error is logged and the other state is still
    mapped.
    """
    return _ToKeys(function, Unstructured if isinstance(type_, Kind) else type_)


def _states(event: Event) -> Iterator[Entry]:
    if event.new is not None:
        yield event.new
    if event.old is not None:
        yield event.old


@dataclass(frozen=True)
class _ToSelf:
    def __call__(self, event: Event) -> Iterable[Key]:
        return (event.key,)

    def __repr__(self) -> str:
        return "to_self()"


@dataclass(frozen=True)
class _ToOwner:
    kind: Kind
    controller_only: bool

    def __call__(self, event: Event) -> Iterable[Key]:
        keys = (
            self._key_of(entry, owner) for entry in _states(event) for owner in _owners(entry) if self._matches(owner)
        )
        return tuple(dict.fromkeys(keys))

    def __repr__(self) -> str:
        return (
            f"to_owner({self.kind.kind})"
            if self.controller_only
            else f"to_owner({self.kind.kind}, controller_only=False)"
        )

    def _matches(self, owner: OwnerReference) -> bool:
        if owner.kind != self.kind.kind or split_api_version(owner.api_version)[0] != self.kind.group:
            return False
        return bool(owner.controller) or not self.controller_only

    def _key_of(self, entry: Entry, owner: OwnerReference) -> Key:
        return Key(entry.key.namespace if self.kind.namespaced else "", owner.name)


def _owners(entry: Entry) -> list[OwnerReference]:
    try:
        return entry.owner_references()
    except DecodeError:
        return []  # the garbage collector could not read these references either


@dataclass(frozen=True)
class _ToKeys:
    function: Callable[[Any], Iterable[Key]]
    type: Any

    def __call__(self, event: Event) -> Iterable[Key]:
        return tuple(dict.fromkeys(key for entry in _states(event) for key in self._keys_of(entry)))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"to_keys({name}, {self.type.__name__})"

    def _keys_of(self, entry: Entry) -> list[Key]:
        try:
            return [_require_key(key) for key in self.function(entry.read(self.type))]
        except Exception:
            _log.exception("mapper failed", extra={"mapper": repr(self), "key": str(entry.key)})
            return []


def _require_key(key: Any) -> Key:
    if isinstance(key, Key):
        return key
    raise TypeError(f"{key!r} is not a Key: return a list of Key(namespace, name)")
