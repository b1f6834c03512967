"""What every object carries: its metadata and the references between objects."""

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
    """Which fields one manager owns, as server-side apply keeps them."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    fields_v1: msgspec.Raw = _NULL
    subresource: str | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)  # nothing in it can be changed in place

    def fields(self) -> dict[str, Any]:
        """Give the fields as nested dicts. They stay raw until then: few look, and they are half of many objects."""
        return msgspec.json.decode(self.fields_v1, type=dict[str, Any] | None) or {}


class ObjectMeta(Model):
    """Metadata of an object: who it is, and what the server and others have noted on it."""

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
    """Metadata of a list: the version it was read at, and where the next page starts."""

    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: int | None = None
    self_link: str | None = None
    shard_info: dict[str, Any] | None = None
