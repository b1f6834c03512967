"""What a caller points at: a class, a kind or a name of one; a name or a key in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from konverge.client.discovery import Discovery
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured, decode, kind_of

__all__ = ["KindName", "Target", "key_in", "target_of", "target_of_object"]

R = TypeVar("R", bound=AnyObject)

KindName: TypeAlias = Kind | str
"""A kind without a class: its objects are `Unstructured`."""


@dataclass(frozen=True, slots=True)
class Target(Generic[R]):
    """A kind, and the type that its objects are read as."""

    kind: Kind
    type: type[R]

    def read(self, data: bytes) -> R:
        """Read an object."""
        return self.complete(decode(self.type, data))

    def complete(self, obj: R) -> R:
        """Say of an untyped object what it is: one of a list comes without apiVersion and kind."""
        if isinstance(obj, Unstructured) and not (obj.api_version and obj.kind):
            named = Unstructured({"apiVersion": self.kind.api_version, "kind": self.kind.kind, **obj})
            return cast(R, named)
        return obj


async def target_of(thing: type[Any] | KindName, discovery: Discovery) -> Target[Any]:
    """Find out what a class, a kind or a name like "deployments.apps" stands for."""
    if isinstance(thing, str):
        return Target(await discovery.named(thing), Unstructured)
    if isinstance(thing, Kind):
        return Target(thing, Unstructured)
    return Target(kind_of(thing), thing)


async def target_of_object(obj: AnyObject, discovery: Discovery) -> Target[Any]:
    """Find out the kind of an object; an untyped one says it by apiVersion and kind."""
    if isinstance(obj, Resource):
        return Target(kind_of(obj), type(obj))
    if not isinstance(obj, Unstructured):
        raise TypeError(f"expected an object, got {type(obj).__name__}: wrap a dict as Unstructured(...)")
    if not obj.api_version or not obj.kind:
        raise ValueError("an untyped object needs 'apiVersion' and 'kind'")
    return Target(await discovery.kind(obj.api_version, obj.kind), Unstructured)


def key_in(kind: Kind, name: str | Key, namespace: str | None, default_namespace: str) -> Key:
    """Put a key together: a name is looked for in the namespace given, else in the client's own."""
    if isinstance(name, Key):
        if namespace is not None and namespace != name.namespace:
            raise ValueError(f"the key {name} and namespace={namespace!r} disagree: give only one of them")
        return name
    if not kind.namespaced:
        if namespace:
            raise ValueError(f"{kind.kind} is cluster-scoped: leave out namespace={namespace!r}")
        return Key("", name)
    return Key(default_namespace if namespace is None else namespace, name)
