"""What one resource does differently: the seam between the API's common path and each kind.

The common path (`writes.py`, `reads.py`, ...) does everything that is the same for all kinds: metadata, versions,
names, preconditions, dry run, managed fields, storage, watches. It asks a `Strategy` for the rest. A write goes so:

    decode -> default -> (managed fields) -> mutating admission -> prepare -> validate -> validating admission -> store

Rules for every implementation:

1. A document is a plain JSON dict in the strategy's own version, with kind and apiVersion. `decode` may change or
   replace what it is given; the caller hands over a private copy. `validate*`, `warnings*`, `cells` and `fields` change
   nothing.
2. `metadata` belongs to the common path: it is decoded, checked and protected there. A strategy changes in it only
   what its kind does to it (generation; a finalizer; a label that is always set).
3. Nothing here does I/O or waits; only `from_storage` and `to_storage` may (a conversion webhook).
4. A strategy holds no state about objects. What it needs of the cluster comes through `RequestContext`.

`DefaultStrategy` (plain.py) is a complete implementation for kinds without special rules. Kinds with rules subclass it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge.objects.kinds import Kind
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.tables import Column
from konverge_cluster.patches.topology import Topology

__all__ = [
    "ConversionRequired",
    "Document",
    "RequestContext",
    "ResourceInfo",
    "Scaling",
    "Strategy",
    "SubresourceInfo",
    "WriteRules",
]

Document = dict[str, Any]

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class ConversionRequired(Exception):
    """A conversion is needed that somebody else makes. After `await fetch()` it is there: try again."""

    def __init__(self, fetch: Callable[[], Awaitable[None]]) -> None:
        super().__init__("an object has to be converted first")
        self.fetch = fetch


@dataclass(frozen=True, slots=True)
class SubresourceInfo:
    """A subresource as discovery shows it; `kind` is what it speaks.

    An empty version means that group and version are those of the resource; a Scale says `autoscaling` and `v1`.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """What discovery says about one served version of a resource, and where its objects are stored.

    `storage` names the collection in storage: versions of one resource share it, and so do events of both groups.
    """

    kind: Kind
    storage: tuple[str, str]
    verbs: tuple[str, ...] = VERBS
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[SubresourceInfo, ...] = ()
    storage_version_hash: str = ""

    def subresource(self, name: str) -> SubresourceInfo | None:
        return next((each for each in self.subresources if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Where the scale subresource finds its numbers: wire paths without the leading dot, as tuples of keys.

    `selector_text` is True when the selector's path holds a string; else it holds a LabelSelector.
    """

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] | None = None
    selector_text: bool = False


def _nothing_else(_group: str, _plural: str, _namespace: str, _name: str) -> Document | None:
    return None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a rule may know besides the object: the time, who asks, whether it is a rehearsal, other objects.

    `now` is the wall clock as the API writes it (`2026-01-01T00:00:00Z`). `lookup(group, plural, namespace, name)` is
    the stored document of another object, or None.
    """

    now: str
    namespace: str
    dry_run: bool = False
    user: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    lookup: Callable[[str, str, str, str], Document | None] = _nothing_else


class WriteRules(Protocol):
    """How one endpoint of a resource (the object itself, `status`, `approval`, ...) changes an existing object."""

    @property
    def reset_fields(self) -> tuple[str, ...]:
        """Paths (`status`, `metadata.labels`) that this endpoint never changes, so that nobody owns them through it."""
        ...

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        """Put back in `new` what this endpoint does not change, and set what follows from the change (generation)."""
        ...

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        """Say what is wrong with the change; metadata is checked by the caller."""
        ...

    def warnings_on_update(self, new: Document, old: Document) -> list[str]: ...


class Strategy(WriteRules, Protocol):
    """One served version of a resource: what it looks like from outside, and its rules."""

    def __hash__(self) -> int: ...

    @property
    def info(self) -> ResourceInfo: ...

    @property
    def custom(self) -> bool:
        """Whether this is a custom resource: the server words several answers differently for those."""
        ...

    @property
    def deprecation(self) -> str:
        """The warning that every answer about this resource carries; "" for none."""
        ...

    @property
    def encoding_version(self) -> object:
        """What stored bytes must be marked with to be served as they are; others pass through `from_storage`."""
        ...

    @property
    def topologies(self) -> Mapping[str, Topology]:
        """How lists and maps merge, for every apiVersion in which the resource is served, this one included."""
        ...

    def convert(self, document: Document, api_version: str) -> Document:
        """The same object in another served version, for the bookkeeping of managed fields; may share parts.

        Raises: Unconverted when somebody has to be asked first.
        """
        ...

    @property
    def strategic(self) -> bool:
        """Whether strategic merge patches are accepted; custom resources refuse them."""
        ...

    # From bytes to an object of this kind, and between versions.

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        """Bring a document into the kind's shape; return it with what a strict reader objects to.

        Unknown fields are dropped and reported as `unknown field "spec.foo"`. Metadata is already decoded.
        Raises: StatusError (400) when a value has a type that the kind cannot hold.
        """
        ...

    def default(self, document: Document) -> None:
        """Fill in defaults, in place."""
        ...

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        """Turn stored documents, each with its stamp, into this version, with the defaults of today.

        It is asked only for documents whose stamp is another one. They come without kind and apiVersion.
        """
        ...

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        """Turn a document of this version into the one that is stored, and say its stamp."""
        ...

    # Rules of writing. `endpoint("")` is the strategy itself.

    def endpoint(self, subresource: str) -> WriteRules | None:
        """The rules of a subresource that updates the object (`status`, ...), or None when there is none."""
        ...

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        """Say what is wrong with a name; `prefix` when it is a generateName."""
        ...

    def prepare_create(self, new: Document, context: RequestContext) -> None: ...

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]: ...

    def warnings_on_create(self, new: Document) -> list[str]: ...

    @property
    def create_on_update(self) -> bool:
        """Whether PUT of a missing object creates it."""
        ...

    @property
    def unconditional_update(self) -> bool:
        """Whether PUT without a resourceVersion is accepted."""
        ...

    @property
    def scaling(self) -> Scaling | None: ...

    # Rules of deletion.

    @property
    def default_propagation(self) -> str:
        """`Background`; `Orphan` for kinds whose dependents stay; `Unsupported` for kinds that nothing depends on."""
        ...

    @property
    def returns_deleted(self) -> bool:
        """Whether DELETE answers with the object instead of a Status."""
        ...

    def grace_period(self, document: Document, requested: int | None) -> int | None:
        """How many seconds an object lives on after DELETE; None when the kind knows no grace."""
        ...

    def mark_deleted(self, document: Document) -> None:
        """Note in the object that it is being deleted, besides the metadata (a namespace's phase)."""
        ...

    def is_deletion_blocked(self, document: Document) -> bool:
        """Whether something besides finalizers keeps an object that is being deleted (a namespace's content)."""
        ...

    def warnings_on_delete(self, document: Document, options: Mapping[str, Any]) -> list[str]: ...

    # Views.

    @property
    def field_labels(self) -> tuple[str, ...]:
        """Fields that field selectors may name, besides metadata.name and metadata.namespace."""
        ...

    def fields(self, document: Document) -> dict[str, str]:
        """The values of `field_labels` in an object, as strings."""
        ...

    def unknown_field_label(self, label: str) -> str:
        """The text that refuses a field selector."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]: ...

    def cells(self, document: Document, now: float) -> list[Any]:
        """The cells of one row; `now` is the wall clock in seconds, for ages."""
        ...

    def schemas(self) -> Mapping[str, Any]:
        """OpenAPI v3 component schemas by name: this kind's, and all that it refers to. There may be more in it."""
        ...

    @property
    def schema_name(self) -> str:
        """The name of this kind's own schema in `schemas()`."""
        ...
