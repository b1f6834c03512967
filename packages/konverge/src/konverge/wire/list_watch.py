"""List and watch one collection, and resume where the last watch ended.

This module decides; it does not read sockets, sleep or log. Feed it what the server sent, and it returns what happened
and which request to send next. Rules that every change to this file keeps:

1. A watch starts only from a version of a complete list, of a bookmark or of a confirmed change.
2. If the server no longer has that version (410 Gone, as status or as frame), or the collection does not exist (404),
   the collection is listed again. Watching "from now" would leave objects that were deleted in between in the store for
   ever. After any other failure the version is kept.
3. The objects of a list count only when the list is complete: after its last page, or after the bookmark that ends the
   initial events. Each new list starts with `Reset`.
4. A collection is listed by a stream if the server supports it. A server that rejects it (400, 422) or never ends the
   initial events gets no such request again. If streams keep breaking off, one list is read in pages.
5. A failed page is requested again; after a timeout or a cut connection with half the size. If its token is too old
   (410) the list starts again, in pages; the second time in one response, since the time between pages is too long.
6. A watch that keeps failing at the same version although the server is up (invalid frames, 500) is not repeated for
   ever: the collection is listed.
7. The end of a stream is not a failure, wherever it ends. The version that it reached is kept.
8. The version never decreases, and "0" is not a version.
9. A list without a version counts too, if the server never sent one with a version. Its watch starts without a version,
   so that the server sends what exists; deletions in between are found by the list that follows the end of each watch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import msgspec
from msgspec import Struct

from konverge.errors import (
    DecodeError,
    Expired,
    Invalid,
    KonvergeError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from konverge.wire.error_responses import error_from_frame
from konverge.wire.frames import Frame
from konverge.wire.options import ListOptions, WatchOptions

__all__ = [
    "PAGE_SIZE",
    "Change",
    "List",
    "ListWatchState",
    "NextRequest",
    "Progress",
    "Put",
    "Remove",
    "Reset",
    "Selection",
    "Stage",
    "Synced",
    "Watch",
]

PAGE_SIZE = 500

_MAX_EXPIRED_LISTS = 2
"""How many lists in pages may expire before one is requested in one response: rule 5."""

_MIN_PAGE_SIZE = 20
"""The smallest page size after timeouts, unless the selection has a smaller one."""

_MAX_BROKEN_STREAMS = 3
"""How many streaming lists may break off before the list is read in pages: rule 4."""

_MAX_FAILED_WATCHES = 5
"""How many watches may fail at the same version, while the server is up, before a list: rule 6."""


class Reset(msgspec.Struct, frozen=True, gc=False):
    """A new list starts; discard the objects of an incomplete one."""


class Put(msgspec.Struct, frozen=True, gc=False):
    """An object was added or changed; `raw` is its state."""

    raw: bytes


class Remove(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted; `raw` is its last state."""

    raw: bytes


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The list is complete; it is the collection at this version."""

    resource_version: str


class Progress(msgspec.Struct, frozen=True, gc=False):
    """All changes up to this version have been received."""

    resource_version: str


Change: TypeAlias = Reset | Put | Remove | Synced | Progress


class List(Struct, frozen=True):
    """Request a page of the list, or all of it."""

    options: ListOptions


class Watch(Struct, frozen=True):
    """Open a watch: of changes, or of the existing objects and then of changes."""

    options: WatchOptions


NextRequest: TypeAlias = List | Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects to list and watch, and how to list them: as a stream if possible, else in pages."""

    label_selector: str = ""
    field_selector: str = ""
    page_size: int = PAGE_SIZE
    streaming: bool = True

    def __post_init__(self) -> None:
        if self.page_size < 1:
            raise ValueError(f"page_size: expected a number of objects above 0, got {self.page_size}")


class Stage(Enum):
    """The current request: a list as a stream, a list in pages, or a watch."""

    STREAM = "stream"
    PAGES = "pages"
    WATCH = "watch"


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None


_page = msgspec.json.Decoder(_Page)


class ListWatchState:
    """The state machine that lists and watches one collection.

    Send the request that `next_request` returns, and report its result: `handle_page` for the body of a list,
    `handle_open` and then `handle_frame` for a stream, `handle_close` at the end of a stream, `handle_error` for every
    error, `handle_timeout` when the initial events do not end. Call `confirm` after each `Put` and `Remove` of a frame
    is stored: only then a watch may resume after it.

    Promises: the methods raise nothing but KonvergeError, which is then to be passed to `handle_error`; `next_request`
    may be called at any time.
    """

    def __init__(self, selection: Selection | None = None, *, kind: str = "") -> None:
        self._selection = selection or Selection()
        self._kind = kind
        self._streaming = self._selection.streaming
        self._version = ""  # of the last confirmed change; "" while there is no complete list
        self._token = ""  # of the next page
        self._page_size = self._selection.page_size
        self._open = False  # whether the stream of a list is open
        self._versioned = False  # whether a list had a version: rule 9
        self._expired_lists = 0
        self._broken_streams = 0
        self._failed_watches = 0
        self._stage = Stage.WATCH
        self.relist()

    @property
    def stage(self) -> Stage:
        """The kind of the current request."""
        return self._stage

    @property
    def resource_version(self) -> str:
        """The last confirmed version; "" before the first list is complete and after a version expired."""
        return self._version

    @property
    def streaming(self) -> bool:
        """Whether lists are requested as streams; False once the server turned out not to support it."""
        return self._streaming

    def next_request(self, *, timeout: float | None = None) -> NextRequest:
        """Return the next request; a watch is limited to `timeout` seconds."""
        labels, fields = self._selection.label_selector, self._selection.field_selector
        if self._stage is Stage.PAGES:
            unpaged = self._expired_lists >= _MAX_EXPIRED_LISTS
            limit = 0 if unpaged else self._page_size
            return List(ListOptions(label_selector=labels, field_selector=fields, limit=limit, continue_=self._token))
        return Watch(
            WatchOptions(
                label_selector=labels,
                field_selector=fields,
                resource_version=self._version,
                send_initial_events=self._stage is Stage.STREAM,
                timeout=timeout,
            )
        )

    def handle_page(self, body: bytes) -> Iterator[Change]:
        """Decode the body of a list and yield its changes. The page counts after the last change.

        Raises: DecodeError when it is not a list, or when the list does not end.
        """
        try:
            page = _page.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"list {self._kind}: the response is not a list: {_describe(body, error)}") from error
        version, token = page.metadata.resource_version, page.metadata.continue_ or ""
        lacks_version = self._versioned and not _is_version(version)
        if lacks_version or (token and token == self._token):
            what = "it has no resourceVersion" if lacks_version else "the next page has the same token"
            self.relist()
            raise DecodeError(f"list {self._kind}: the list cannot be completed: {what}")
        return self._read_page(page.items or [], version if _is_version(version) else "", token)

    def _read_page(self, items: list[msgspec.Raw], version: str, token: str) -> Iterator[Change]:
        if not self._token:
            # Also when this page is read for the second time: it may have a newer state than the first time.
            yield Reset()
        for item in items:
            yield Put(bytes(item))
        self._token = token
        self._page_size = min(self._selection.page_size, self._page_size * 2)
        if not token:
            yield self._complete(version)

    def handle_open(self) -> Reset | None:
        """Record that the requested stream is open."""
        if self._stage is not Stage.STREAM:
            return None
        self._open = True
        return Reset()

    def handle_frame(self, frame: Frame) -> Change | None:
        """Return the change of a frame, None if it has none.

        Raises: the ApiError of a frame of type ERROR, DecodeError for an unknown type.
        """
        match frame.type:
            case "ADDED" | "MODIFIED":
                return Put(bytes(frame.object))
            case "DELETED":
                return Remove(bytes(frame.object))
            case "BOOKMARK":
                return self._bookmark(frame)
            case "ERROR":
                raise error_from_frame(frame, verb="watch", kind=self._kind)
        raise DecodeError(f"watch {self._kind}: a frame has an unknown type")

    def confirm(self, version: str) -> None:
        """Record that the change of this version is stored. Initial events are not ordered and are not recorded."""
        if self._stage is Stage.WATCH and self._version and _is_newer(version, self._version):
            self._version = version
            self._failed_watches = 0

    def _bookmark(self, frame: Frame) -> Change | None:
        version, initial_events_end = frame.bookmark()
        if self._stage is Stage.STREAM:
            return self._complete(version) if initial_events_end and _is_version(version) else None
        if version != self._version and not _is_newer(version, self._version):
            return None
        self.confirm(version)
        return Progress(version)

    def handle_close(self) -> None:
        """Record that the stream has ended, on either side."""
        if self._stage is Stage.STREAM and self._open:
            self._count_broken_stream()
        elif self._stage is Stage.WATCH and not self._version:
            self.relist()

    def handle_timeout(self) -> None:
        """Record that the initial events did not end in time; from now on lists are requested in pages."""
        if self._stage is Stage.STREAM:
            self._streaming = False
            self.relist()

    def handle_error(self, error: KonvergeError) -> None:
        """Record the error of the last request or of its response."""
        match self._stage:
            case Stage.STREAM:
                self._stream_failed(error)
            case Stage.PAGES:
                self._page_failed(error)
            case Stage.WATCH:
                self._watch_failed(error)

    def relist(self) -> None:
        """Discard the version and list from the start."""
        streams = self._streaming and self._broken_streams < _MAX_BROKEN_STREAMS
        self._stage = Stage.STREAM if streams else Stage.PAGES
        self._version = self._token = ""
        self._open = False
        self._failed_watches = 0

    def _stream_failed(self, error: KonvergeError) -> None:
        if isinstance(error, Invalid):
            self._streaming = False
            self.relist()
        elif self._open:
            self._count_broken_stream()

    def _count_broken_stream(self) -> None:
        self._broken_streams += 1
        self.relist()

    def _page_failed(self, error: KonvergeError) -> None:
        if isinstance(error, TransportError):
            smallest = min(_MIN_PAGE_SIZE, self._selection.page_size)
            self._page_size = max(smallest, self._page_size // 2)
        if isinstance(error, TransportError | DecodeError | ServerError | TooManyRequests):
            return  # the next request for this page may succeed
        if isinstance(error, Expired):
            self._expired_lists += 1
        self.relist()

    def _watch_failed(self, error: KonvergeError) -> None:
        if isinstance(error, ServerError | DecodeError):
            self._failed_watches += 1
        is_gone = isinstance(error, Expired | NotFound)
        if is_gone or not self._version or self._failed_watches >= _MAX_FAILED_WATCHES:
            self.relist()

    def _complete(self, version: str) -> Synced:
        self._stage = Stage.WATCH
        self._versioned = self._versioned or bool(version)
        self._version, self._token = version, ""
        self._expired_lists = self._broken_streams = 0
        return Synced(version)


def _is_version(version: str) -> bool:
    return version not in ("", "0")


def _is_newer(version: str, than: str) -> bool:
    """Compare as numbers if both are; any other version that differs counts as newer."""
    if not _is_version(version) or version == than:
        return False
    if _is_number(version) and _is_number(than):
        return version > than if len(version) == len(than) else len(version) > len(than)
    return True


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdecimal()


def _describe(body: bytes, error: Exception) -> str:
    if body.lstrip()[:1] == b"<":
        return "it is HTML or XML (is there a proxy in between?)"
    if not isinstance(error, msgspec.MsgspecError):
        return "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
