"""Objects: what has a kind, a name and metadata, typed or untyped.

Both sorts answer the same questions (`api_version`, `kind`, `key`, `resource_version`, ...), so all machinery takes
either. A typed object is a `Resource`; an `Unstructured` one is a dict with wire names, for kinds without a class.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self, TypeAlias, cast

import msgspec

from konverge.objects.keys import Key
from konverge.objects.kinds import Kind
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, ModelMeta, field

__all__ = ["AnyObject", "Resource", "ResourceMeta", "Unstructured", "kind_of", "same_object"]

SOURCE = "_source"
"""Where a decoded object keeps its bytes: in its `__dict__`, beside the fields."""


class ResourceMeta(ModelMeta):
    """Makes classes of objects: `identity` is the kind, and gives `apiVersion` and `kind` their values."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        identity: Kind | None = None,
        **options: Any,
    ) -> ResourceMeta:
        if identity is not None:
            # From a factory, since a plain default would not be written; this one costs least.
            namespace["api_version"] = field(default_factory=identity.api_version.__str__)
            namespace["kind"] = field(default_factory=identity.kind.__str__)
            namespace["__annotations__"] = {"api_version": str, "kind": str, **namespace.get("__annotations__", {})}
            namespace["__kind__"] = identity
        return cast(ResourceMeta, super().__new__(mcls, name, bases, namespace, **options))


class ListText:
    """The JSON of a list that objects were read from, cut into its items when the source of the first one is asked for.

    Most objects of a list are only read, and their source is never asked for.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._items: list[msgspec.Raw] | None = None

    def item(self, place: int) -> bytes:
        if self._items is None:
            self._items = msgspec.json.decode(self._text, type=_RawList).items
        return bytes(self._items[place])


class _RawList(msgspec.Struct):
    items: list[msgspec.Raw]


class PartOfList:
    """The source of an object as a place in a list."""

    __slots__ = ("_list", "_place")

    def __init__(self, text: ListText, place: int) -> None:
        self._list = text
        self._place = place

    def cut_out(self) -> bytes:
        return self._list.item(self._place)


class Resource(Model, metaclass=ResourceMeta, dict=True):
    """A typed Kubernetes object.

    A class of objects names its kind: `class Pod(Resource, identity=Kind("", "v1", "Pod", "pods"))`.

    Promises: `api_version` and `kind` are always written, whether or not they were given; an object that was decoded
    remembers the bytes it came from (`source`), so that fields its class does not know survive the next write; copies
    made with `copy` remember them too.
    """

    __kind__: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace or "", self.metadata.name or "")

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version or ""

    @property
    def source(self) -> bytes | None:
        """The JSON this object was decoded from; None for one made in Python."""
        source = self.__dict__.get(SOURCE)
        if isinstance(source, PartOfList):
            source = self.__dict__[SOURCE] = source.cut_out()
        return source

    def remember_source(self, source: bytes | None) -> None:
        """Note the JSON that stands behind this object; decoding does it by itself."""
        self.__dict__[SOURCE] = source

    def __repr__(self) -> str:
        if self.kind == "Secret" and self.api_version == "v1":
            return f"Secret({str(self.key)!r})"  # its data must not reach a log by way of its looks
        return super().__repr__()

    def __copy__(self) -> Self:
        twin = self._shallow()
        twin.remember_source(self.source)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self._shallow()
        for attribute in self.__struct_fields__:
            setattr(twin, attribute, copy.deepcopy(getattr(self, attribute), memo))
        twin.remember_source(self.source)
        return twin

    def _shallow(self) -> Self:
        values = {attribute: getattr(self, attribute) for attribute in self.__struct_fields__}
        return type(self)(**values)


class Unstructured(dict[str, Any]):
    """A Kubernetes object as a dict with wire names: `obj["spec"]["replicas"]`.

    It is an ordinary dict; the properties only spell out what the machinery asks of every object.
    """

    @property
    def api_version(self) -> str:
        return str(self.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        return str(self.get("kind") or "")

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as it stands in the dict; made when missing, so it can be written to."""
        metadata: dict[str, Any] = self.setdefault("metadata", {})
        return metadata

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def name(self) -> str:
        return self._fact("name")

    @property
    def namespace(self) -> str:
        return self._fact("namespace")

    @property
    def uid(self) -> str:
        return self._fact("uid")

    @property
    def resource_version(self) -> str:
        return self._fact("resourceVersion")

    @classmethod
    def from_wire(cls, wire: object) -> Unstructured:
        """Take JSON values as they are; msgspec calls it for fields and decoders of this type."""
        if not isinstance(wire, dict):
            raise ValueError(f"Expected `object`, got `{type(wire).__name__}`")
        return cls(wire)

    def _fact(self, name: str) -> str:
        # What stands there may be anything: saying what is wrong with it is the server's part.
        metadata = self.get("metadata")
        return str(metadata.get(name) or "") if isinstance(metadata, dict) else ""


AnyObject: TypeAlias = Resource | Unstructured


def kind_of(thing: Resource | type[Resource] | Kind) -> Kind:
    """Give the kind of a typed object or class; a Kind is its own answer."""
    if isinstance(thing, Kind):
        return thing
    kind: Kind | None = getattr(thing, "__kind__", None)
    if kind is None:
        raise TypeError(f"{thing!r} has no kind: use a class of konverge.k8s, a CustomResource, or a Kind")
    return kind


def same_object(one: AnyObject, other: AnyObject) -> bool:
    """Tell whether two states are of one object: the uid decides, a name may be used again."""
    return one.uid == other.uid and one.key == other.key
