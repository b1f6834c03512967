"""Strategies: the rules of one resource, as an interface between the common code and each kind.

The common code (`writes.py`, `reads.py`, ...) does everything that is the same for all kinds: metadata, versions,
names, preconditions, dry run, managed fields, storage, watches. A `Strategy` does the rest. The steps of a write:

    decode -> default -> (managed fields) -> mutating admission -> prepare -> validate -> validating admission -> store

Rules for every implementation:

1. A document is a plain JSON dict in the strategy's own version, with kind and apiVersion. `decode` may change or
   replace its argument, which is a private copy. `validate*`, `warnings*`, `cells` and `fields` change nothing.
2. `metadata` belongs to the common code: it is decoded, validated and protected there. A strategy changes in it only
   what its kind requires (generation; a finalizer; a label that is always set).
3. Nothing here does I/O or waits; only `from_storage` and `to_storage` may (a conversion webhook).
4. A strategy holds no state about objects. `RequestContext` provides what it needs of the cluster.

`DefaultStrategy` (default_strategy.py) is a complete implementation for kinds without special rules. Kinds with rules
subclass it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge.objects.kinds import Kind
from konverge_cluster.api.authorization import ADMIN, UserInfo
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
    """A conversion by a webhook is required first. Await `fetch()`, which caches the result, and retry."""

    def __init__(self, fetch: Callable[[], Awaitable[None]]) -> None:
        super().__init__("an object must be converted first")
        self.fetch = fetch


@dataclass(frozen=True, slots=True)
class SubresourceInfo:
    """A subresource as discovery shows it; `kind` is the kind of its bodies.

    An empty version means that group and version are those of the resource; for a Scale they are `autoscaling` and
    `v1`.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """The discovery information of one served version of a resource, and its collection in storage.

    `storage` is the name of the collection. The versions of one resource share it, and so do the events of both groups.
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
    """The fields of the scale subresource: wire paths without the leading dot, as tuples of keys.

    `selector_text` is True when the value at the selector's path is a string; otherwise it is a LabelSelector.
    """

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] | None = None
    selector_text: bool = False


def _no_lookup(_group: str, _plural: str, _namespace: str, _name: str) -> Document | None:
    return None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a rule may use besides the object: the time, the user, whether it is a dry run, other objects.

    `now` is the wall clock as the API writes it (`2026-01-01T00:00:00Z`). `lookup(group, plural, namespace, name)` is
    the stored document of another object, or None.
    """

    now: str
    namespace: str
    dry_run: bool = False
    user: UserInfo = ADMIN
    options: Mapping[str, Any] = field(default_factory=dict)
    lookup: Callable[[str, str, str, str], Document | None] = _no_lookup


class WriteRules(Protocol):
    """The update rules of one endpoint of a resource: the object itself, `status`, `approval`, ..."""

    @property
    def reset_fields(self) -> tuple[str, ...]:
        """Paths (`status`, `metadata.labels`) that this endpoint never changes, so a write through it owns none."""
        ...

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        """Restore in `new` what this endpoint does not change, and set what follows from the change (generation)."""
        ...

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        """Return the errors in the change; the caller validates metadata."""
        ...

    def warnings_on_update(self, new: Document, old: Document) -> list[str]: ...


class Strategy(WriteRules, Protocol):
    """One served version of a resource: its discovery information and its rules."""

    def __hash__(self) -> int: ...

    @property
    def info(self) -> ResourceInfo: ...

    @property
    def custom(self) -> bool:
        """Whether this is a custom resource; several error texts differ for those."""
        ...

    @property
    def deprecation(self) -> str:
        """The warning in every response for this resource; "" for none."""
        ...

    @property
    def encoding_version(self) -> object:
        """The encoding version of stored bytes that can be served as they are; others pass through `from_storage`."""
        ...

    @property
    def topologies(self) -> Mapping[str, Topology]:
        """How lists and maps merge, for every apiVersion in which the resource is served, this one included."""
        ...

    def convert(self, document: Document, api_version: str) -> Document:
        """Return the object in another served version, for managed fields; it may share parts with the argument.

        Raises: ConversionRequired when a webhook has to convert it first.
        """
        ...

    @property
    def strategic(self) -> bool:
        """Whether strategic merge patches are accepted; custom resources reject them."""
        ...

    # From bytes to an object of this kind, and between versions.

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        """Decode a document as this kind; return it with the strict decoding errors.

        Unknown fields are dropped and reported as `unknown field "spec.foo"`. Metadata is already decoded.
        Raises: StatusError 400 when a value has a type that its field cannot hold.
        """
        ...

    def default(self, document: Document) -> None:
        """Set defaults, in place."""
        ...

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        """Convert stored documents, each with its encoding version, to this version, with the current defaults.

        It is called only for documents whose encoding version differs. They have no kind and apiVersion.
        """
        ...

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        """Convert a document of this version to the stored form; return it with its encoding version."""
        ...

    # Rules of writes. `endpoint("")` is the strategy itself.

    def endpoint(self, subresource: str) -> WriteRules | None:
        """Return the rules of a subresource that updates the object (`status`, ...), or None when there is none."""
        ...

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        """Return the errors in a name; `prefix` is True for a generateName."""
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

    # Rules of deletions.

    @property
    def default_propagation(self) -> str:
        """`Background`; `Orphan` for kinds whose dependents remain; `Unsupported` for kinds without dependents."""
        ...

    @property
    def returns_deleted(self) -> bool:
        """Whether DELETE returns the object instead of a Status."""
        ...

    def grace_period(self, document: Document, requested: int | None) -> int | None:
        """Return the grace period after DELETE, in seconds; None when the kind has no graceful deletion."""
        ...

    def mark_deleted(self, document: Document) -> None:
        """Record in the object, outside metadata, that it is being deleted (a namespace's phase)."""
        ...

    def is_deletion_blocked(self, document: Document) -> bool:
        """Report whether something besides finalizers defers the removal (a namespace's spec.finalizers)."""
        ...

    def warnings_on_delete(self, document: Document, options: Mapping[str, Any]) -> list[str]: ...

    # Views.

    @property
    def field_labels(self) -> tuple[str, ...]:
        """The fields that field selectors may use, besides metadata.name and metadata.namespace."""
        ...

    def fields(self, document: Document) -> dict[str, str]:
        """Return the values of `field_labels` in an object, as strings."""
        ...

    def unknown_field_label(self, label: str) -> str:
        """Return the error text for an unsupported field selector."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]: ...

    def cells(self, document: Document, now: float) -> list[Any]:
        """Return the cells of one row; `now` is the wall clock in seconds, for ages."""
        ...

    def schemas(self) -> Mapping[str, Any]:
        """Return OpenAPI v3 component schemas by name: at least this kind's, and all that it refers to."""
        ...

    @property
    def schema_name(self) -> str:
        """The name of this kind's own schema in `schemas()`."""
        ...
