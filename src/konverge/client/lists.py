"""Lists and watch events, as the client hands them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from konverge.client.targets import Target
from konverge.errors import DecodeError
from konverge.objects import AnyObject, ListMeta, Model, decode, field

__all__ = ["Listing", "WatchEvent", "read_listing"]

R = TypeVar("R", bound=AnyObject)


class Listing(list[R], Generic[R]):
    """The objects of a list, with the version it was read at.

    `continue_` is where the next page starts, "" after the last; `remaining` is how many are left, if the server says.
    """

    def __init__(self, items: list[R], metadata: ListMeta) -> None:
        super().__init__(items)
        self.resource_version = metadata.resource_version or ""
        self.continue_ = metadata.continue_ or ""
        self.remaining = metadata.remaining_item_count


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[R]):
    """One change: `type` is ADDED, MODIFIED or DELETED; a deleted object is in its last state."""

    type: str
    object: R


class _Envelope(Model):
    metadata: ListMeta = field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


def read_listing(target: Target[R], body: bytes) -> Listing[R]:
    """Read the body of a list. Each object gets bytes of its own, so that one kept does not keep the whole body."""
    envelope = decode(_Envelope, body)
    try:
        return Listing([target.read(bytes(item)) for item in envelope.items or ()], envelope.metadata)
    except DecodeError as error:
        raise DecodeError(f"list {target.kind.kind}: {error}", path=error.path) from error
