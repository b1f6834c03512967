"""What mappers read: the cached kinds of one controller, from memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias, TypeVar, overload

from konverge.cache import Lister
from konverge.objects import Key, Kind, Resource, Unstructured, kind_of

__all__ = ["CacheReader"]

T = TypeVar("T", bound=Resource)
V = TypeVar("V")

Objects: TypeAlias = list[V]


class CacheReader:
    """Reads the kinds that a controller declares, for its mappers.

    Promises: no read waits or sends a request; every object is a new copy; own writes are included. If a kind was
    declared more than once, full objects are preferred to metadata.

    Every read raises ValueError for a kind that the controller does not declare, and NotSynced until the first list of
    the kind is complete.
    """

    def __init__(self, listers: Iterable[Lister[Any]] = ()) -> None:
        self._listers: dict[Kind, Lister[Any]] = {}
        for lister in sorted(listers, key=lambda one: bool(one.options.metadata_only)):
            self._listers.setdefault(lister.kind, lister)

    @overload
    def get(self, kind: type[T], name: str | Key, *, namespace: str = "") -> T | None: ...
    @overload
    def get(self, kind: Kind, name: str | Key, *, namespace: str = "") -> Unstructured | None: ...
    def get(self, kind: type[Any] | Kind, name: str | Key, *, namespace: str = "") -> Any:
        """Return one object; None when it does not exist."""
        return self._lister(kind).get(name, namespace=namespace)

    @overload
    def list(self, kind: type[T], *, namespace: str = "", labels: str = "") -> Objects[T]: ...
    @overload
    def list(self, kind: Kind, *, namespace: str = "", labels: str = "") -> Objects[Any]: ...
    def list(self, kind: type[Any] | Kind, *, namespace: str = "", labels: str = "") -> Objects[Any]:
        """Return the objects of a namespace, or of all, that match a label selector."""
        return self._lister(kind).list(namespace=namespace, labels=labels)

    @overload
    def find(self, kind: type[T], index: str, value: Hashable, *, namespace: str = "") -> Objects[T]: ...
    @overload
    def find(self, kind: Kind, index: str, value: Hashable, *, namespace: str = "") -> Objects[Any]: ...
    def find(self, kind: type[Any] | Kind, index: str, value: Hashable, *, namespace: str = "") -> Objects[Any]:
        """Return the objects that have a value in an index of `.index(kind, index, ...)`."""
        return self._lister(kind).find(index, value, namespace=namespace)

    def find_keys(
        self, kind: type[Resource] | Kind, index: str, value: Hashable, *, namespace: str = ""
    ) -> Objects[Key]:
        """Return the keys of the objects that `find` returns, and of those that do not match their class."""
        return [entry.key for entry in self._lister(kind).find_entries(index, value, namespace=namespace)]

    def _lister(self, kind: type[Any] | Kind) -> Lister[Any]:
        known = kind_of(kind)
        lister = self._listers.get(known)
        if lister is None:
            raise ValueError(f"{known.kind} is not declared by this controller: add .owns() or .watches()")
        return lister.with_type(Unstructured if isinstance(kind, Kind) else kind)
