"""The target of a request: a kind and a key, from the arguments of the verbs."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar, cast

from msgspec import Struct

from konverge.client.discovery import Discovery
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured, decode, kind_of

__all__ = ["KindName", "Target", "resolve_key", "resolve_object_target", "resolve_target"]

R = TypeVar("R", bound=AnyObject)

KindName: TypeAlias = Kind | str
"""A kind without a class: its objects are `Unstructured`."""


class Target(Struct, Generic[R], frozen=True):
    """A kind, and the type that its objects are decoded to."""

    kind: Kind
    type: type[R]

    def decode(self, data: bytes) -> R:
        """Decode an object."""
        return self.complete(decode(self.type, data))

    def complete(self, obj: R) -> R:
        """Add apiVersion and kind to an unstructured object: the items of a list lack them."""
        if isinstance(obj, Unstructured) and not (obj.api_version and obj.kind):
            completed = Unstructured({"apiVersion": self.kind.api_version, "kind": self.kind.kind, **obj})
            return cast(R, completed)
        return obj


async def resolve_target(kind: type[Any] | KindName, discovery: Discovery) -> Target[Any]:
    """Return the target for a class, a kind or a name such as "deployments.apps"."""
    if isinstance(kind, str):
        return Target(await discovery.find(kind), Unstructured)
    if isinstance(kind, Kind):
        return Target(kind, Unstructured)
    return Target(kind_of(kind), kind)


async def resolve_object_target(obj: AnyObject, discovery: Discovery) -> Target[Any]:
    """Return the target for an object; the kind of an unstructured one follows from its apiVersion and kind."""
    if isinstance(obj, Resource):
        return Target(kind_of(obj), type(obj))
    if not isinstance(obj, Unstructured):
        raise TypeError(f"expected an object, got {type(obj).__name__} (wrap a dict as Unstructured(...))")
    if not obj.api_version or not obj.kind:
        raise ValueError("an unstructured object needs 'apiVersion' and 'kind'")
    return Target(await discovery.kind(obj.api_version, obj.kind), Unstructured)


def resolve_key(kind: Kind, name: str | Key, namespace: str | None, default_namespace: str) -> Key:
    """Return the key for a name: in the given namespace, else in the client's namespace."""
    if isinstance(name, Key):
        if namespace is not None and namespace != name.namespace:
            raise ValueError(f"the key {name} and namespace={namespace!r} differ (leave out namespace=)")
        return name
    if not kind.namespaced:
        if namespace:
            raise ValueError(f"{kind.kind} is cluster-scoped (leave out namespace={namespace!r})")
        return Key("", name)
    return Key(default_namespace if namespace is None else namespace, name)
