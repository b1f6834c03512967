"""Follow one collection: list it, watch it, and pick up where we left off."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from konverge.wire.options import ListOptions, WatchOptions

__all__ = ["Change", "List", "Progress", "Put", "Question", "Remove", "Reset", "Synced", "Watch"]


class Reset(msgspec.Struct, frozen=True, gc=False):
    """A new list begins; what an unfinished one brought is void."""


class Put(msgspec.Struct, frozen=True, gc=False):
    """The state of one object, new or changed."""

    raw: bytes


class Remove(msgspec.Struct, frozen=True, gc=False):
    """The last state of an object that is gone."""

    raw: bytes


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The list is complete; it shows the collection at this version."""

    resource_version: str


class Progress(msgspec.Struct, frozen=True, gc=False):
    """Nothing is missing up to this version."""

    resource_version: str


Change: TypeAlias = Reset | Put | Remove | Synced | Progress


class List(msgspec.Struct, frozen=True):
    """Ask for a page of the list, or for all of it."""

    options: ListOptions


class Watch(msgspec.Struct, frozen=True):
    """Open a stream: of changes, or of what is there and then of changes."""

    options: WatchOptions


Question: TypeAlias = List | Watch
