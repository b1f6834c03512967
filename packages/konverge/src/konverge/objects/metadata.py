"""The metadata of objects and lists, and owner references."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any, Self

import msgspec

from konverge.objects.models import Model, field

__all__ = ["ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference"]


_NULL = msgspec.Raw(b"null")


class OwnerReference(Model):
    """A reference to the object that owns this one; the garbage collector follows it by uid."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    """The fields that one manager owns, as server-side apply records them."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    fields_v1: msgspec.Raw = _NULL
    subresource: str | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)  # its values are immutable

    def fields(self) -> dict[str, Any]:
        """Return the fields as nested dicts. They are decoded here only: few callers need them, and they are large."""
        return msgspec.json.decode(self.fields_v1, type=dict[str, Any] | None) or {}


class ObjectMeta(Model):
    """Metadata of an object (metav1.ObjectMeta)."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: list[OwnerReference] = field(default_factory=list)
    finalizers: list[str] = field(default_factory=list)
    managed_fields: list[ManagedFieldsEntry] = field(default_factory=list)
    self_link: str | None = None


class ListMeta(Model):
    """Metadata of a list (metav1.ListMeta): its resource version and the token of the next page."""

    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: int | None = None
    self_link: str | None = None
    shard_info: dict[str, Any] | None = None
