"""Mappers: which keys an event enqueues. They read as directions: `to_owner(WebApp)`.

For an update, both the old and the new state are mapped: the key that an object referred to before and the key that it
refers to now are both enqueued. A mapper may read the kinds of its controller from the cache, with a `CacheReader`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeAlias, TypeVar, overload

from msgspec import Struct

from konverge.cache import Entry, Event
from konverge.errors import DecodeError, NotSynced
from konverge.objects import Key, Kind, OwnerReference, Resource, Unstructured, kind_of, split_api_version
from konverge.triggers.readers import CacheReader

__all__ = [
    "CacheMapper",
    "EventMapper",
    "Mapper",
    "ToReferring",
    "reads_cache",
    "to_keys",
    "to_owner",
    "to_referring",
    "to_self",
]

_log = logging.getLogger("konverge.triggers")

T = TypeVar("T")

EventMapper: TypeAlias = Callable[[Event], Iterable[Key]]
CacheMapper: TypeAlias = Callable[[Event, CacheReader], Iterable[Key]]
Mapper: TypeAlias = EventMapper | CacheMapper
"""Returns the keys that an event enqueues; a key that it returns twice is enqueued once.

A mapper with a second argument receives a `CacheReader`. Its reads raise NotSynced before the first list of a kind is
complete; a mapper need not handle that, since no reconcile has started then, and each object of the controller is
enqueued when its own kind has been listed.
"""


def to_self() -> EventMapper:
    """Map an object to its own key."""
    return _ToSelf()


def to_owner(kind: type[Resource] | Kind, *, controller_only: bool = True) -> EventMapper:
    """Map an object to its owner of a kind, by its owner references.

    References match by group and kind, in any version; `controller_only` ignores owners that are not its controller.
    """
    return _ToOwner(kind_of(kind), controller_only)


@overload
def to_keys(function: Callable[[T], Iterable[Key]], type_: type[T] | Kind) -> EventMapper: ...
@overload
def to_keys(function: Callable[[T, CacheReader], Iterable[Key]], type_: type[T] | Kind) -> CacheMapper: ...
def to_keys(function: Callable[..., Iterable[Key]], type_: type[Any] | Kind) -> Mapper:
    """Map an object to the keys that a function returns; the function receives its own copy, decoded into the type.

    A function with a second argument receives a `CacheReader` too. If a state does not match the type, or the function
    fails on it, the error is logged and the other state is still mapped.

    Raises: TypeError for a function that accepts neither one nor two arguments.
    """
    type_ = Unstructured if isinstance(type_, Kind) else type_
    return _ToKeysByReading(function, type_) if reads_cache(function) else _ToKeys(function, type_)


def to_referring(kind: type[Resource] | Kind, *, index: str) -> CacheMapper:
    """Map an object to the objects of a kind that refer to it, found by an index of their references.

    The index has the name of the object that is referred to: `.index(Tenant, "profile", ".spec.profileName")`. Names
    are looked up in the namespace of the changed object; if one of the two kinds is cluster-scoped, in all namespaces.
    References to another namespace need an index by function whose values are keys, `Key(namespace, name)`.
    """
    return ToReferring(kind_of(kind), index)


def reads_cache(function: Callable[..., Any]) -> bool:
    """Report whether a mapper, or the function of one, has a second argument.

    Raises: TypeError for a function that accepts neither one nor two arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables of C have no signature
        return False
    for arguments in ((None,), (None, None)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) == 2
    raise TypeError(f"{function!r} does not map: write a function of one argument, or of two, (obj, reader)")


def _states(event: Event) -> Iterator[Entry]:
    if event.new is not None:
        yield event.new
    if event.old is not None:
        yield event.old


class _ToSelf(Struct, frozen=True):
    def __call__(self, event: Event) -> Iterable[Key]:
        return (event.key,)

    def __repr__(self) -> str:
        return "to_self()"


class _ToOwner(Struct, frozen=True):
    kind: Kind
    controller_only: bool

    def __call__(self, event: Event) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        for entry in _states(event):
            namespace = entry.key.namespace if self.kind.namespaced else ""
            for owner in _owners(entry):
                if self._matches(owner):
                    keys[Key(namespace, owner.name)] = None
        return tuple(keys)

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


def _owners(entry: Entry) -> list[OwnerReference]:
    try:
        return entry.owner_references()
    except DecodeError:
        return []  # the garbage collector could not read these references either


class ToReferring(Struct, frozen=True):
    """The mapper of `to_referring`."""

    kind: Kind
    index: str

    def __call__(self, event: Event, reader: CacheReader) -> Iterable[Key]:
        key = event.key
        same_namespace = key.namespace if self.kind.namespaced else ""
        by_name = reader.find_keys(self.kind, self.index, key.name, namespace=same_namespace)
        return tuple(dict.fromkeys([*by_name, *reader.find_keys(self.kind, self.index, key)]))

    def __repr__(self) -> str:
        return f"to_referring({self.kind.kind}, index={self.index!r})"


class _ToKeys(Struct, frozen=True):
    function: Callable[..., Iterable[Key]]
    type: Any

    def __call__(self, event: Event) -> Iterable[Key]:
        return tuple(dict.fromkeys(key for entry in _states(event) for key in self._keys_of(entry)))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"to_keys({name}, {self.type.__name__})"

    def _keys_of(self, entry: Entry) -> list[Key]:
        try:
            return [_require_key(key) for key in self.function(entry.read(self.type))]
        except NotSynced:
            raise
        except Exception:
            _log.exception("mapper failed", extra={"mapper": repr(self), "key": str(entry.key)})
            return []


class _ToKeysByReading(Struct, frozen=True):
    function: Callable[..., Iterable[Key]]
    type: Any

    def __call__(self, event: Event, reader: CacheReader) -> Iterable[Key]:
        @wraps(self.function)
        def keys_of(obj: Any) -> Iterable[Key]:
            return self.function(obj, reader)

        return _ToKeys(keys_of, self.type)(event)

    def __repr__(self) -> str:
        return repr(_ToKeys(self.function, self.type))


def _require_key(key: Any) -> Key:
    if isinstance(key, Key):
        return key
    raise TypeError(f"{key!r} is not a Key: return a list of Key(namespace, name)")
