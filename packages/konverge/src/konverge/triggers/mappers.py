"""Mappers: whom a change concerns. They read as directions: `to_owner(WebApp)`.

Of an update both states are mapped, the old one and the new one: whoever an object pointed to and whoever it points to
now are both told.
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
"""Gives the keys that an event concerns; one that it gives twice is woken once."""


def to_self() -> Mapper:
    """Map an object to its own key."""
    return _ToSelf()


def to_owner(kind: type[Resource] | Kind, *, controller_only: bool = True) -> Mapper:
    """Map an object to its owner of a kind, as its owner references tell.

    References match by group and kind, in whatever version; `controller_only` leaves out owners that do not control it.
    """
    return _ToOwner(kind_of(kind), controller_only)


def to_keys(function: Callable[[T], Iterable[Key]], type_: type[T] | Kind) -> Mapper:
    """Map an object to each of the keys that a function gives of it; it is handed a copy of its own, of the type.

    For a state that does not fit the type, or on which the function fails, the log says so, and the other state is
    mapped all the same.
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
            self._key_of(entry, owner) for entry in _states(event) for owner in _owners(entry) if self._is_meant(owner)
        )
        return tuple(dict.fromkeys(keys))

    def __repr__(self) -> str:
        return (
            f"to_owner({self.kind.kind})"
            if self.controller_only
            else f"to_owner({self.kind.kind}, controller_only=False)"
        )

    def _is_meant(self, owner: OwnerReference) -> bool:
        if owner.kind != self.kind.kind or split_api_version(owner.api_version)[0] != self.kind.group:
            return False
        return bool(owner.controller) or not self.controller_only

    def _key_of(self, entry: Entry, owner: OwnerReference) -> Key:
        return Key(entry.key.namespace if self.kind.namespaced else "", owner.name)


def _owners(entry: Entry) -> list[OwnerReference]:
    try:
        return entry.owner_references()
    except DecodeError:
        return []  # what no garbage collector could follow names nobody


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
            return [_checked(key) for key in self.function(entry.read(self.type))]
        except Exception:
            _log.exception("A mapper failed", extra={"mapper": repr(self), "key": str(entry.key)})
            return []


def _checked(key: Any) -> Key:
    if isinstance(key, Key):
        return key
    raise TypeError(f"{key!r} is no key: give a list of Key(namespace, name)")
