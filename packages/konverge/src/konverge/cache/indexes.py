"""Indexes: find the objects with a value without scanning the collection.

An index is built from what readers see, so it includes own writes like every other read. It is built when it is first
used, or when it is added, and maintained from then on. Rules that every change to this file keeps:

1. An object has no values if the index function fails on it, or if its field is missing or not a scalar: no lookup
   returns it. The first failure of an index function is logged.
2. Values compare as in JSON: `true` and 1 are different. A list yields each of its elements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec

from konverge.cache.entries import Entry
from konverge.objects import Key, LabelSelector
from konverge.objects.labels import LabelRequirement, Operator

__all__ = ["Index", "IndexFunc", "Indexes", "LabelIndex", "by_function", "by_path"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T")

IndexFunc: TypeAlias = Callable[[Entry], Iterable[Hashable]]
"""Returns the values under which an entry is found."""

_OWNERS = "owners"
_LABELS = "labels"
_SERVED = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class _Bool(msgspec.Struct, frozen=True):
    """A boolean as a key of a dict, where `True` is the same key as 1 [2]."""

    value: bool


def _distinct(value: Hashable) -> Hashable:
    return _Bool(value) if isinstance(value, bool) else value


class Index:
    """The keys of a store, by value."""

    def __init__(self, name: str, index_func: IndexFunc) -> None:
        self.name = name
        self.index_func = index_func
        # Most values of most indexes have one object, and a set costs more than an entry: a single key is stored bare.
        self._keys: dict[Hashable, Key | set[Key]] = {}
        self._failure_logged = False

    def new_empty(self) -> Index:
        """Return an empty index with the same name and function."""
        return Index(self.name, self.index_func)

    def update(self, old: Entry | None, new: Entry | None) -> None:
        """Replace the values of `old` with those of `new`."""
        before = self._compute(old)
        after = self._compute(new)
        if before == after:
            return
        for value in before - after:
            self._drop(value, old.key)  # type: ignore[union-attr]
        for value in after - before:
            self._add(value, new.key)  # type: ignore[union-attr]

    def find(self, value: Hashable) -> tuple[Key, ...]:
        """Return the keys that have a value."""
        found = self._keys.get(_distinct(value))
        if found is None:
            return ()
        return (found,) if isinstance(found, Key) else tuple(found)

    def count(self, value: Hashable) -> int:
        """Return how many keys have a value."""
        found = self._keys.get(_distinct(value))
        return 0 if found is None else 1 if isinstance(found, Key) else len(found)

    def values(self) -> tuple[Hashable, ...]:
        """Return every value that at least one object has."""
        return tuple(value.value if isinstance(value, _Bool) else value for value in self._keys)

    def _compute(self, entry: Entry | None) -> set[Hashable]:
        if entry is None:
            return set()
        try:
            return set(map(_distinct, self.index_func(entry)))
        except Exception:
            if not self._failure_logged:
                self._failure_logged = True
                _log.exception("index function failed", extra={"index": self.name, "key": str(entry.key)})
            return set()

    def _add(self, value: Hashable, key: Key) -> None:
        found = self._keys.get(value)
        if found is None:
            self._keys[value] = key
        elif isinstance(found, Key):
            self._keys[value] = {found, key}
        else:
            found.add(key)

    def _drop(self, value: Hashable, key: Key) -> None:
        found = self._keys.get(value)
        if isinstance(found, set):
            found.discard(key)
            if len(found) == 1:
                self._keys[value] = found.pop()
        elif found is not None:
            del self._keys[value]


class LabelIndex(Index):
    """The keys of a store, by label; it serves selectors that require a value."""

    def __init__(self) -> None:
        super().__init__(_LABELS, labels_of)

    def new_empty(self) -> LabelIndex:
        """Return an empty label index."""
        return LabelIndex()

    def candidates(self, selector: LabelSelector) -> tuple[Key, ...] | None:
        """Return the keys that match the most selective requirement; None when no requirement can be served."""
        served = [requirement for requirement in selector.requirements if requirement.operator in _SERVED]
        if not served:
            return None
        best = min(served, key=self._candidate_count)
        return tuple(key for value in best.values for key in self.find((best.key, value)))

    def _candidate_count(self, requirement: LabelRequirement) -> int:
        return sum(self.count((requirement.key, value)) for value in requirement.values)


class Indexes:
    """The indexes of one store; those by owner and by label are built when they are first used."""

    def __init__(self, kind: str, all_entries: Callable[[], Iterable[Entry]]) -> None:
        self._kind = kind
        self._all_entries = all_entries
        self._indexes: dict[str, Index] = {}
        self._staged: dict[str, Index] = {}

    def __bool__(self) -> bool:
        return bool(self._indexes)

    def names(self) -> tuple[str, ...]:
        """Return the names of the indexes."""
        return tuple(self._indexes)

    def update(self, old: Entry | None, new: Entry | None) -> None:
        """Replace the values of `old` with those of `new` in every index."""
        if old is not new:
            for index in self._indexes.values():
                index.update(old, new)

    def begin(self, *, first: bool) -> None:
        """Start a list; for the first list, build a copy of each index object by object while they arrive."""
        self._staged = {name: index.new_empty() for name, index in self._indexes.items()} if first else {}

    def stage(self, old: Entry | None, new: Entry | None) -> None:
        """Record a change of the staged objects."""
        for index in self._staged.values():
            index.update(old, new)

    def swap(self, visible: Mapping[Key, Entry | None], listed: Callable[[Key], Entry | None]) -> None:
        """Replace the indexes with the staged ones.

        `visible` has the entries of the keys where readers see something other than the list.
        """
        late = [index for name, index in self._indexes.items() if name not in self._staged]
        self._indexes |= self._staged
        for index in self._staged.values():
            for key, entry in visible.items():
                index.update(listed(key), entry)
        self._staged = {}
        for index in late:
            self._build(index.new_empty())

    def add(self, name: str, index_func: IndexFunc) -> None:
        """Add an index and build it from the existing objects; adding an equal one again does nothing.

        Raises: ValueError when the name is taken by a different index.
        """
        known = self._indexes.get(name)
        if name in (_OWNERS, _LABELS) or (known is not None and known.index_func != index_func):
            raise ValueError(f"{self._kind} already has a different index {name!r}: choose another name")
        if known is None:
            self._build(Index(name, index_func))

    def get(self, name: str) -> Index:
        """Return the index with a name.

        Raises: ValueError when no index has that name.
        """
        index = self._indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise ValueError(
                f"{self._kind} has no index {name!r}: declare it with .index({self._kind}, {name!r}, '.spec.field') of"
                f" the controller, or with add_index of the lister (known indexes: {known})"
            )
        return index

    def owners(self) -> Index:
        """Return the index by owner uid."""
        return self._indexes.get(_OWNERS) or self._build(Index(_OWNERS, owners_of))

    def labels(self) -> LabelIndex:
        """Return the index by label."""
        index = self._indexes.get(_LABELS) or self._build(LabelIndex())
        assert isinstance(index, LabelIndex)
        return index

    def _build(self, index: Index) -> Index:
        for entry in self._all_entries():
            index.update(None, entry)
        self._indexes[index.name] = index
        return index


def labels_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Return the labels of an entry as pairs."""
    return zip(entry.labels[::2], entry.labels[1::2], strict=True)


def owners_of(entry: Entry) -> tuple[str, ...]:
    """Return the uids of the owners of an entry."""
    return entry.owners


def by_function(type_: type[T], function: Callable[[T], Iterable[Hashable]]) -> IndexFunc:
    """Index by the values that a function returns for each object, decoded into a type."""
    return _ByFunction(type_, function)


def by_path(path: str) -> IndexFunc:
    """Index by the field at a wire path such as ".spec.nodeName"; only that field is decoded.

    Raises: ValueError when it is not a wire path.
    """
    return _ByPath(path)


@dataclass(frozen=True)
class _ByFunction:
    # Equal functions are one index, however often it is added.
    type: Any
    function: Callable[[Any], Iterable[Hashable]]

    def __call__(self, entry: Entry) -> Iterable[Hashable]:
        return self.function(entry.read(self.type))


@dataclass(frozen=True)
class _ByPath:
    path: str
    _decode: Callable[[bytes], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = self.path.removeprefix(".").split(".")
        if not self.path.startswith(".") or not all(names):
            raise ValueError(f"{self.path!r} is not a wire path: write one such as '.spec.nodeName'")
        object.__setattr__(self, "_decode", msgspec.json.Decoder(_nested(names)).decode)

    def __call__(self, entry: Entry) -> Iterable[Hashable]:
        value = self._decode(entry.json)
        while isinstance(value, msgspec.Struct):
            value = value.field  # type: ignore[attr-defined]
        elements = value if isinstance(value, list) else [value]
        return [element for element in elements if isinstance(element, str | int | float)]


def _nested(names: list[str]) -> Any:
    """Return a type that decodes one field and skips all others."""
    type_: Any = Any
    for name in reversed(names):
        type_ = msgspec.defstruct("Field", [("field", type_, None)], rename={"field": name}) | None
    return type_
