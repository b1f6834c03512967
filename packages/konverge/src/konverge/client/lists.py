"""Lists and watch events, as the client returns them."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from konverge.client.targets import Target
from konverge.errors import DecodeError
from konverge.objects import AnyObject, ListMeta, Unstructured, decode_list

__all__ = ["ObjectList", "WatchEvent", "decode_object_list"]

R = TypeVar("R", bound=AnyObject)


class ObjectList(list[R], Generic[R]):
    """The objects of a list, with its resource version.

    `continue_` is the token of the next page, "" after the last one; `remaining` is the number of objects on later
    pages, if the server says.
    """

    def __init__(self, items: list[R], metadata: ListMeta) -> None:
        super().__init__(items)
        self.resource_version = metadata.resource_version or ""
        self.continue_ = metadata.continue_ or ""
        self.remaining = metadata.remaining_item_count


class WatchEvent(Struct, Generic[R], frozen=True):
    """A change of an object: `type` is ADDED, MODIFIED or DELETED; a deleted object has its last state."""

    type: str
    object: R


def decode_object_list(target: Target[R], body: bytes) -> ObjectList[R]:
    """Decode the body of a list."""
    try:
        metadata, items = decode_list(target.type, body)
    except DecodeError as error:
        raise DecodeError(f"list {target.kind.kind}: {error}", path=error.path) from error
    return ObjectList([target.complete(item) for item in items] if target.type is Unstructured else items, metadata)
