"""Objects with a kind, a name and metadata, typed or unstructured.

A typed object is a `Resource`; an `Unstructured` object is a dict with wire names, for kinds without a class. Both have
the same properties (`api_version`, `kind`, `key`, `resource_version`, ...), so other packages accept either.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

import msgspec

from konverge.objects.keys import Key
from konverge.objects.kinds import Kind
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, ModelKeywords, ModelMeta, field

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["AnyObject", "Resource", "ResourceMeta", "Unstructured", "kind_of", "labels_of", "same_object"]

SOURCE = "_source"
"""The entry of an object's `__dict__` with the bytes that it was decoded from."""


class ResourceMeta(ModelMeta):
    """The metaclass of object classes: `identity` is the kind, and the value of `apiVersion` and `kind`."""

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
            # Factories, since plain defaults are not encoded; these are the fastest.
            namespace["api_version"] = field(default_factory=identity.api_version.__str__)
            namespace["kind"] = field(default_factory=identity.kind.__str__)
            namespace["__annotations__"] = {"api_version": str, "kind": str, **namespace.get("__annotations__", {})}
            namespace["__kind__"] = identity
        return cast(ResourceMeta, super().__new__(mcls, name, bases, namespace, **options))


class ListSource:
    """The JSON of a list, split into items when the source of one of them is first needed.

    Most objects of a list are only read, and their source is never needed.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._items: list[msgspec.Raw] | None = None

    def item(self, index: int) -> bytes:
        if self._items is None:
            self._items = msgspec.json.decode(self._text, type=_RawList).items
        return bytes(self._items[index])


class _RawList(msgspec.Struct):
    items: list[msgspec.Raw]


class ListItemSource:
    """The source of an object that was an item of a list."""

    __slots__ = ("_index", "_list")

    def __init__(self, source: ListSource, index: int) -> None:
        self._list = source
        self._index = index

    def extract(self) -> bytes:
        return self._list.item(self._index)


if TYPE_CHECKING:
    Metaclass = type  # see konverge.objects.models
else:
    Metaclass = ResourceMeta


class Resource(Model, metaclass=Metaclass, dict=True):
    """A typed Kubernetes object.

    A subclass names its kind: `class Pod(Resource, identity=Kind("", "v1", "Pod", "pods"))`.

    Promises: `api_version` and `kind` are always encoded, whether or not they were given; a decoded object keeps the
    bytes that it was decoded from (`source`), so that fields that its class does not know survive the next write;
    copies made with `copy` keep them too.
    """

    __kind__: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, identity: Kind | None = None, **keywords: Unpack[ModelKeywords]) -> None: ...

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
        """The JSON that this object was decoded from, None for an object created in Python."""
        source = self.__dict__.get(SOURCE)
        if isinstance(source, ListItemSource):
            source = source.extract()
            self.set_source(source)
        return source

    def set_source(self, source: bytes | None) -> None:
        """Set the JSON that this object was decoded from; `decode` calls this."""
        vars(self)[SOURCE] = source

    def __repr__(self) -> str:
        if self.kind == "Secret" and self.api_version == "v1":
            return f"Secret({str(self.key)!r})"  # its data must not get into a log
        return super().__repr__()

    def __copy__(self) -> Self:
        clone = super().__copy__()
        clone.set_source(self.source)
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = super().__copy__()
        for attribute in self.__struct_fields__:
            setattr(clone, attribute, copy.deepcopy(getattr(self, attribute), memo))
        clone.set_source(self.source)
        return clone

    def __replace__(self, /, **changes: Any) -> Self:
        clone = super().__replace__(**changes)
        clone.set_source(self.source)
        return clone


class Unstructured(dict[str, Any]):
    """A Kubernetes object as a dict with wire names: `obj["spec"]["replicas"]`.

    It is an ordinary dict with the properties of a `Resource`.
    """

    def __repr__(self) -> str:
        if self.kind == "Secret":
            return f"Unstructured(Secret {str(self.key)!r})"  # its data must not get into a log
        return super().__repr__()

    @property
    def api_version(self) -> str:
        return str(self.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        return str(self.get("kind") or "")

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata in the dict; created if missing, so that it can be written to."""
        metadata: dict[str, Any] = self.setdefault("metadata", {})
        return metadata

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def name(self) -> str:
        return self._metadata_value("name")

    @property
    def namespace(self) -> str:
        return self._metadata_value("namespace")

    @property
    def uid(self) -> str:
        return self._metadata_value("uid")

    @property
    def resource_version(self) -> str:
        return self._metadata_value("resourceVersion")

    @classmethod
    def from_wire(cls, wire: object) -> Unstructured:
        """Return JSON values as an object; msgspec calls this for fields and decoders of this type."""
        if not isinstance(wire, dict):
            raise ValueError(f"Expected `object`, got `{type(wire).__name__}`")
        return cls(wire)

    def _metadata_value(self, name: str) -> str:
        # The values may be anything: the server validates them.
        metadata = self.get("metadata")
        return str(metadata.get(name) or "") if isinstance(metadata, dict) else ""


AnyObject: TypeAlias = Resource | Unstructured


def kind_of(obj: Resource | type[Resource] | Kind) -> Kind:
    """Return the kind of a typed object or class; return a Kind unchanged."""
    if isinstance(obj, Kind):
        return obj
    kind: Kind | None = getattr(obj, "__kind__", None)
    if kind is None:
        raise TypeError(f"{obj!r} has no kind (use a class of konverge.k8s, a CustomResource, or a Kind)")
    return kind


def labels_of(obj: AnyObject) -> dict[str, str]:
    """Return the labels of an object, {} if it has none."""
    labels = obj.metadata.labels if isinstance(obj, Resource) else obj.metadata.get("labels")
    return labels or {}


def same_object(one: AnyObject, other: AnyObject) -> bool:
    """Report whether both are states of the same object: the uid decides, since names are reused."""
    return one.uid == other.uid and one.key == other.key
