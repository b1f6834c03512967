"""The default strategy, for kinds without special rules; kinds with rules subclass it.

Most methods ignore some of their arguments, which are those of the `Strategy` protocol.
"""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from konverge_cluster.api import names
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext, ResourceInfo, Scaling, WriteRules
from konverge_cluster.api.tables import DEFAULT_COLUMNS, Column
from konverge_cluster.patches.topology import DEDUCED, Topology

__all__ = ["DefaultStrategy", "StatusRules", "increment_generation"]


def increment_generation(new: Document, old: Document, *, ignore: tuple[str, ...] = ("metadata", "status")) -> None:
    """Increment the generation when any top-level field differs, except those in `ignore`.

    Kind and apiVersion are always ignored: they are not stored.
    """
    skipped = {*ignore, "kind", "apiVersion"}
    if {k: v for k, v in new.items() if k not in skipped} != {k: v for k, v in old.items() if k not in skipped}:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class StatusRules:
    """The default status subresource: only `status` changes; metadata, except managedFields, is restored."""

    reset_fields: tuple[str, ...] = ("metadata", "spec")

    def __init__(self, strategy: DefaultStrategy) -> None:
        self._strategy = strategy

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        managed = new["metadata"].get("managedFields")
        status = new.get("status")
        new.clear()
        new.update(old)
        metadata = dict(old["metadata"])
        metadata.pop("managedFields", None)
        if managed:
            metadata["managedFields"] = managed
        new["metadata"] = metadata
        if status is None:
            new.pop("status", None)
        else:
            new["status"] = status

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self._strategy.validate_status(new, old, context)

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []


class DefaultStrategy:
    """A kind without special rules: any JSON is accepted, the name is a DNS subdomain, the table has name and age.

    `generation` is True when the kind has a generation, which every change outside metadata and status increments. With
    a `status` subresource in `info` the main endpoint ignores status.
    """

    custom = False
    deprecation = ""
    encoding_version: object = None
    strategic = True
    reset_fields: tuple[str, ...] = ()
    create_on_update = False
    unconditional_update = True
    scaling: Scaling | None = None
    default_propagation = "Background"
    returns_deleted = False
    field_labels: tuple[str, ...] = ()
    columns: tuple[Column, ...] = DEFAULT_COLUMNS
    generation = False

    def __init__(self, info: ResourceInfo) -> None:
        self.info = info
        self.topologies: Mapping[str, Topology] = {info.kind.api_version: Topology(DEDUCED)}
        self.has_status = info.subresource("status") is not None
        self._endpoints: dict[str, WriteRules] = {"": self}
        if self.has_status:
            self.reset_fields = ("status",)
            self._endpoints["status"] = StatusRules(self)

    @property
    def schema_name(self) -> str:
        return ""

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        return document, []

    def default(self, document: Document) -> None:
        return None

    def convert(self, document: Document, api_version: str) -> Document:
        return {**document, "apiVersion": api_version}

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        return [document for document, _ in stored]

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        return document, self.encoding_version

    def endpoint(self, subresource: str) -> WriteRules | None:
        return self._endpoints.get(subresource)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return names.subdomain_name_errors(name, prefix=prefix)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        if self.has_status:
            new.pop("status", None)
        if self.generation:
            new["metadata"]["generation"] = 1
        else:
            new["metadata"].pop("generation", None)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        if self.has_status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        if self.generation:
            increment_generation(new, old, ignore=("metadata", "status") if self.has_status else ("metadata",))

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        return []

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self.validate(new, context)

    def validate_status(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return []

    def warnings_on_create(self, new: Document) -> list[str]:
        return []

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []

    def warnings_on_delete(self, document: Document, options: Mapping[str, Any]) -> list[str]:
        return []

    def grace_period(self, document: Document, requested: int | None) -> int | None:
        return None

    def mark_deleted(self, document: Document) -> None:
        return None

    def is_deletion_blocked(self, document: Document) -> bool:
        return False

    def fields(self, document: Document) -> dict[str, str]:
        return {}

    def unknown_field_label(self, label: str) -> str:
        return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def cells(self, document: Document, now: float) -> list[Any]:
        return [document["metadata"]["name"], document["metadata"]["creationTimestamp"]]

    def schemas(self) -> Mapping[str, Any]:
        return {}
