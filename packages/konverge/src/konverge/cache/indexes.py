"""Indexes: which objects have this value, answered without looking at all of them.

An index is made from what readers see, so it shows own writes like every other read. It is built when it is first
asked for, or declared, and kept from then on. Rules:

1. An object that a function fails on, or whose field is missing or no scalar, has no values: it is in no answer, and
   the log says once which index failed.
2. Values compare as they are in JSON, `true` and 1 as themselves; a list gives each of its elements.
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

__all__ = ["Index", "Indexes", "LabelIndex", "Values", "by_function", "by_path"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T")

Values: TypeAlias = Callable[[Entry], Iterable[Hashable]]
"""Gives the values under which an entry is found."""

_OWNERS = "owners"
_LABELS = "labels"
_SERVED = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class Index:
    """The keys of a store by value."""

    def __init__(self, name: str, values: Values) -> None:
        self.name = name
        self.by = values
        # Most values of most indexes have one object, and a set costs more than an entry: one key stands for itself.
        self._found: dict[Hashable, Key | set[Key]] = {}
        self._complained = False

    def empty(self) -> Index:
        """Give an index of the same sort with nothing in it."""
        return Index(self.name, self.by)

    def move(self, old: Entry | None, new: Entry | None) -> None:
        """Note that an object is seen as `new` where it was seen as `old`."""
        before = self._values_of(old)
        after = self._values_of(new)
        if before == after:
            return
        for value in before - after:
            self._drop(value, old.key)  # type: ignore[union-attr]
        for value in after - before:
            self._add(value, new.key)  # type: ignore[union-attr]

    def find(self, value: Hashable) -> tuple[Key, ...]:
        """Give the keys with a value."""
        found = self._found.get(value)
        if found is None:
            return ()
        return (found,) if isinstance(found, Key) else tuple(found)

    def count(self, value: Hashable) -> int:
        """Say how many keys have a value."""
        found = self._found.get(value)
        return 0 if found is None else 1 if isinstance(found, Key) else len(found)

    def values(self) -> tuple[Hashable, ...]:
        """Give every value that some object has."""
        return tuple(self._found)

    def _values_of(self, entry: Entry | None) -> set[Hashable]:
        if entry is None:
            return set()
        try:
            return set(self.by(entry))
        except Exception:
            if not self._complained:
                self._complained = True
                _log.exception("An index function failed", extra={"index": self.name, "key": str(entry.key)})
            return set()

    def _add(self, value: Hashable, key: Key) -> None:
        found = self._found.get(value)
        if found is None:
            self._found[value] = key
        elif isinstance(found, Key):
            self._found[value] = {found, key}
        else:
            found.add(key)

    def _drop(self, value: Hashable, key: Key) -> None:
        found = self._found.get(value)
        if isinstance(found, set):
            found.discard(key)
            if len(found) == 1:
                self._found[value] = found.pop()
        elif found is not None:
            del self._found[value]


class LabelIndex(Index):
    """The keys of a store by label; it serves selectors that ask for a value."""

    def __init__(self) -> None:
        super().__init__(_LABELS, labels_of)

    def empty(self) -> LabelIndex:
        """Give an index of the same sort with nothing in it."""
        return LabelIndex()

    def narrow(self, selector: LabelSelector) -> tuple[Key, ...] | None:
        """Give the keys that one requirement leaves, the one that leaves fewest; None when none can be served."""
        served = [one for one in selector.requirements if one.operator in _SERVED]
        if not served:
            return None
        best = min(served, key=self._left)
        return tuple(key for value in best.values for key in self.find((best.key, value)))

    def _left(self, requirement: LabelRequirement) -> int:
        return sum(self.count((requirement.key, value)) for value in requirement.values)


class Indexes:
    """The indexes of one store; those for owners and labels are made when first asked for."""

    def __init__(self, kind: str, everything: Callable[[], Iterable[Entry]]) -> None:
        self._kind = kind
        self._everything = everything
        self._named: dict[str, Index] = {}
        self._staged: dict[str, Index] = {}

    def __bool__(self) -> bool:
        return bool(self._named)

    def names(self) -> tuple[str, ...]:
        """Give the names of the indexes that are kept."""
        return tuple(self._named)

    def move(self, old: Entry | None, new: Entry | None) -> None:
        """Note that an object is seen as `new` where it was seen as `old`."""
        if old is not new:
            for index in self._named.values():
                index.move(old, new)

    def begin(self, *, first: bool) -> None:
        """Start a list; for a first one each index is built beside the one in use, object by object as they come."""
        self._staged = {name: index.empty() for name, index in self._named.items()} if first else {}

    def stage(self, old: Entry | None, new: Entry | None) -> None:
        """Note a change of what the list has brought so far."""
        for index in self._staged.values():
            index.move(old, new)

    def swap(self, seen: Mapping[Key, Entry | None], listed: Callable[[Key], Entry | None]) -> None:
        """Put the staged indexes in the place of those in use; `seen` is where readers see something else."""
        late = [index for name, index in self._named.items() if name not in self._staged]
        self._named |= self._staged
        for index in self._staged.values():
            for key, entry in seen.items():
                index.move(listed(key), entry)
        self._staged = {}
        for index in late:
            self._build(index.empty())

    def add(self, name: str, values: Values) -> None:
        """Declare an index and build it from what is there; the same one again is no mistake.

        Raises: ValueError when the name is taken by another one.
        """
        known = self._named.get(name)
        if name in (_OWNERS, _LABELS) or (known is not None and known.by != values):
            raise ValueError(f"{self._kind} has another index {name!r} already: choose another name")
        if known is None:
            self._build(Index(name, values))

    def named(self, name: str) -> Index:
        """Give an index that was declared.

        Raises: ValueError when there is none of that name.
        """
        index = self._named.get(name)
        if index is None:
            known = ", ".join(sorted(self._named)) or "none"
            raise ValueError(f"{self._kind} has no index {name!r}: declare it with add_index (there are: {known})")
        return index

    def owners(self) -> Index:
        """Give the index by owner uid."""
        return self._named.get(_OWNERS) or self._build(Index(_OWNERS, owners_of))

    def labels(self) -> LabelIndex:
        """Give the index by label."""
        index = self._named.get(_LABELS) or self._build(LabelIndex())
        assert isinstance(index, LabelIndex)
        return index

    def _build(self, index: Index) -> Index:
        for entry in self._everything():
            index.move(None, entry)
        self._named[index.name] = index
        return index


def labels_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Give the labels of an entry as pairs."""
    return zip(entry.labels[::2], entry.labels[1::2], strict=True)


def owners_of(entry: Entry) -> tuple[str, ...]:
    """Give the uids of the owners of an entry."""
    return entry.owners


def by_function(type_: type[T], function: Callable[[T], Iterable[Hashable]]) -> Values:
    """Index by what a function gives for each object, read as a type."""
    return _ByFunction(type_, function)


def by_path(path: str) -> Values:
    """Index by the field at a wire path such as ".spec.nodeName"; only that field is decoded.

    Raises: ValueError when the path is no path.
    """
    return _ByPath(path)


@dataclass(frozen=True)
class _ByFunction:
    # Equal ones are one index, however often it is declared.
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
            raise ValueError(f"{self.path!r} is no wire path: write one such as '.spec.nodeName'")
        object.__setattr__(self, "_decode", msgspec.json.Decoder(_nested(names)).decode)

    def __call__(self, entry: Entry) -> Iterable[Hashable]:
        value = self._decode(entry.json)
        while isinstance(value, msgspec.Struct):
            value = value.field  # type: ignore[attr-defined]
        found = value if isinstance(value, list) else [value]
        return [one for one in found if isinstance(one, str | int | float)]


def _nested(names: list[str]) -> Any:
    """Make a type that reads one field and skips all others."""
    type_: Any = Any
    for name in reversed(names):
        type_ = msgspec.defstruct("Field", [("field", type_, None)], rename={"field": name}) | None
    return type_
