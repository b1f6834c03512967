"""Follow one collection: list it, watch it, and pick up where we left off.

This module decides; it does not read sockets, sleep or log. Tell it what the server said, and it answers what happened
and what to ask next. Rules that every change to this file keeps:

1. A watch starts only from a version that a complete list, a bookmark or a delivered change gave us.
2. When the server has forgotten that version (410 Gone, as status or as frame), or the whole collection (404), we list
   again. We never watch "from now": what was deleted in between would stay in the store for ever. Any other failure
   keeps the version.
3. What a list brings counts only when it is complete: after its last page, or after the bookmark that ends the initial
   events. A list begun anew starts with `Reset`.
4. A collection is listed by a stream where the server offers that. A server that refuses it (400, 422) or never ends
   the initial events is not asked for it again. A stream that keeps breaking off is replaced by pages once.
5. A page that failed is asked for again; one that did not come in time or in one piece, half as large. When its token
   is too old (410) the list starts again, in pages; the second time in one piece, since it is the time between pages
   that is too long.
6. A watch that fails in the same place again and again although the server is well (broken frames, 500) is not
   repeated for ever: the list may know better.
7. The end of a stream is no failure, wherever it ends. The version that it reached is kept.
8. A version never moves back, and "0" is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import msgspec

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
from konverge.wire.answers import error_of_frame
from konverge.wire.frames import Frame
from konverge.wire.options import ListOptions, WatchOptions

__all__ = [
    "PAGE_SIZE",
    "Change",
    "Following",
    "List",
    "Progress",
    "Put",
    "Question",
    "Remove",
    "Reset",
    "Selection",
    "Stage",
    "Synced",
    "Watch",
]

PAGE_SIZE = 500

_PAGED_LISTS_TRIED = 2
"""So many lists in pages may expire before one is asked for in one piece: rule 5."""

_SMALLEST_PAGE = 20
"""A page is not made smaller than this, or than the caller wants it."""

_STREAMS_TRIED = 3
"""So many streaming lists may break off before the list is read in pages: rule 4."""

_FRUITLESS_WATCHES = 5
"""So many watches may fail in the same place, with a server that is well, before we list: rule 6."""


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


@dataclass(frozen=True, slots=True)
class List:
    """Ask for a page of the list, or for all of it."""

    options: ListOptions


@dataclass(frozen=True, slots=True)
class Watch:
    """Open a stream: of changes, or of what is there and then of changes."""

    options: WatchOptions


Question: TypeAlias = List | Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of the collection are followed, and how they are listed: as a stream if possible, else in pages."""

    label_selector: str = ""
    field_selector: str = ""
    page_size: int = PAGE_SIZE
    streaming: bool = True

    def __post_init__(self) -> None:
        if self.page_size < 1:
            raise ValueError(f"page_size is a number of objects above 0, got {self.page_size}")


class Stage(Enum):
    """What is being read: a list as a stream, a list in pages, or changes."""

    STREAM = "stream"
    PAGES = "pages"
    WATCH = "watch"


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    continue_: str | None = msgspec.field(name="continue", default=None)


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None


_page = msgspec.json.Decoder(_Page)


class Following:
    """Follows one collection.

    Ask what `ask` says. Tell what came: `page` for the body of a list, `opened` and then `frame` for a stream, `ended`
    when a stream is over, `failed` for every error, `late` when the initial events do not end. Each `Put` and `Remove`
    that a frame gave is confirmed with `reached`: only then is it behind us.

    Promises: whatever comes, the only error raised is a KonvergeError, which is then told to `failed`; after that, and
    at any other time, `ask` has an answer.
    """

    def __init__(self, selection: Selection | None = None, *, kind: str = "") -> None:
        self._selection = selection or Selection()
        self._kind = kind
        self._streaming = self._selection.streaming
        self._version = ""  # of the last change that is behind us; "" while there is no complete list
        self._token = ""  # of the next page
        self._page_size = self._selection.page_size
        self._open = False  # whether the stream of a list is open
        self._expired_lists = 0
        self._broken_streams = 0
        self._fruitless = 0
        self._stage = Stage.WATCH
        self.list_again()

    @property
    def stage(self) -> Stage:
        """What is being read now."""
        return self._stage

    @property
    def resource_version(self) -> str:
        """How far we have come; "" before the first list is complete and after a version expired."""
        return self._version

    @property
    def streaming(self) -> bool:
        """Whether lists are asked for as streams; False once the server turned out not to know how."""
        return self._streaming

    def ask(self, *, timeout: float | None = None) -> Question:
        """Say what to ask next; a watch for at most `timeout` seconds."""
        labels, fields = self._selection.label_selector, self._selection.field_selector
        if self._stage is Stage.PAGES:
            whole = self._expired_lists >= _PAGED_LISTS_TRIED
            limit = 0 if whole else self._page_size
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

    # A list in pages

    def page(self, body: bytes) -> Iterator[Change]:
        """Take the body of a list. The page counts when the last change has been handed out.

        Raises: DecodeError when it is no list, or one that does not end.
        """
        try:
            page = _page.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"list {self._kind}: the answer is no list: {_in_words(body, error)}") from error
        version, token = page.metadata.resource_version, page.metadata.continue_ or ""
        if not _is_version(version) or (token and token == self._token):
            what = "it has no resourceVersion" if not _is_version(version) else "the same page comes again"
            self.list_again()
            raise DecodeError(f"list {self._kind}: the list cannot be read to its end: {what}")
        return self._read_page(page.items or [], version, token)

    def _read_page(self, items: list[msgspec.Raw], version: str, token: str) -> Iterator[Change]:
        if not self._token:
            # Also when this page is read for the second time: it may show a newer state than the first time.
            yield Reset()
        for item in items:
            yield Put(bytes(item))
        self._token = token
        self._page_size = min(self._selection.page_size, self._page_size * 2)
        if not token:
            yield self._complete(version)

    # A stream

    def opened(self) -> Reset | None:
        """Take note that the stream that was asked for is open."""
        if self._stage is not Stage.STREAM:
            return None
        self._open = True
        return Reset()

    def frame(self, frame: Frame) -> Change | None:
        """Take a frame; None when it changes nothing.

        Raises: the ApiError that a frame of type ERROR holds, DecodeError when it is no frame that the server sends.
        """
        match frame.type:
            case "ADDED" | "MODIFIED":
                return Put(bytes(frame.object))
            case "DELETED":
                return Remove(bytes(frame.object))
            case "BOOKMARK":
                return self._bookmark(frame)
            case "ERROR":
                raise error_of_frame(frame, verb="watch", kind=self._kind)
        raise DecodeError(f"watch {self._kind}: a frame has a type that no server sends")

    def reached(self, version: str) -> None:
        """Take note that the change of this version is behind us; initial events come in no order and do not count."""
        if self._stage is Stage.WATCH and _is_newer(version, self._version):
            self._version = version
            self._fruitless = 0

    def _bookmark(self, frame: Frame) -> Change | None:
        version, initial_events_end = frame.bookmark()
        if self._stage is Stage.STREAM:
            return self._complete(version) if initial_events_end and _is_version(version) else None
        if version != self._version and not _is_newer(version, self._version):
            return None
        self.reached(version)
        return Progress(version)

    # Ends and failures

    def ended(self) -> None:
        """Take note that the stream is over, by whoever's will."""
        if self._stage is Stage.STREAM and self._open:
            self._stream_broke()

    def late(self) -> None:
        """Take note that the initial events did not end in time; the list is asked for in pages from now on."""
        if self._stage is Stage.STREAM:
            self._streaming = False
            self.list_again()

    def failed(self, error: KonvergeError) -> None:
        """Take note of what went wrong with the last question, or with the answer to it."""
        match self._stage:
            case Stage.STREAM:
                self._stream_failed(error)
            case Stage.PAGES:
                self._page_failed(error)
            case Stage.WATCH:
                self._watch_failed(error)

    def list_again(self) -> None:
        """Give up the version, and with it what is known: list from the start."""
        streams = self._streaming and self._broken_streams < _STREAMS_TRIED
        self._stage = Stage.STREAM if streams else Stage.PAGES
        self._version = self._token = ""
        self._open = False
        self._fruitless = 0

    def _stream_failed(self, error: KonvergeError) -> None:
        if isinstance(error, Invalid):
            self._streaming = False
            self.list_again()
        elif self._open:
            self._stream_broke()

    def _stream_broke(self) -> None:
        self._broken_streams += 1
        self.list_again()

    def _page_failed(self, error: KonvergeError) -> None:
        if isinstance(error, TransportError):
            smallest = min(_SMALLEST_PAGE, self._selection.page_size)
            self._page_size = max(smallest, self._page_size // 2)
        if isinstance(error, TransportError | DecodeError | ServerError | TooManyRequests):
            return  # the same page may come the next time
        if isinstance(error, Expired):
            self._expired_lists += 1
        self.list_again()

    def _watch_failed(self, error: KonvergeError) -> None:
        if isinstance(error, ServerError | DecodeError):
            self._fruitless += 1
        if isinstance(error, Expired | NotFound) or self._fruitless >= _FRUITLESS_WATCHES:
            self.list_again()

    def _complete(self, version: str) -> Synced:
        self._stage = Stage.WATCH
        self._version, self._token = version, ""
        self._expired_lists = self._broken_streams = 0
        return Synced(version)


def _is_version(version: str) -> bool:
    return version not in ("", "0")


def _is_newer(version: str, than: str) -> bool:
    """Compare as numbers where both are; a server whose versions are none can only be believed."""
    if not _is_version(version) or version == than:
        return False
    if _is_number(version) and _is_number(than):
        return version > than if len(version) == len(than) else len(version) > len(than)
    return True


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdecimal()


def _in_words(body: bytes, error: Exception) -> str:
    if body.lstrip()[:1] == b"<":
        return "it is HTML or XML (is there a proxy in between?)"
    if not isinstance(error, msgspec.MsgspecError):
        return "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
