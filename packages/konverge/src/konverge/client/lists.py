"""Lists and watch events, as the client hands them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from konverge.client.targets import Target
from konverge.errors import DecodeError
from konverge.objects import AnyObject, ListMeta, Unstructured, decode_list

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


def read_listing(target: Target[R], body: bytes) -> Listing[R]:
    """Read the body of a list."""
    try:
        metadata, items = decode_list(target.type, body)
    except DecodeError as error:
        raise DecodeError(f"list {target.kind.kind}: {error}", path=error.path) from error
    return Listing([target.complete(item) for item in items] if target.type is Unstructured else items, metadata)
