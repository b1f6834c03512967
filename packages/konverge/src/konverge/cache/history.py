"""Whether the history of a server restarted: an etcd restored from a backup, behind versions that were delivered.

Two things look alike from here: a restored etcd, and a server or proxy that answers lists and watches from the past. A
list cannot tell them apart, and neither does one that is repeated. Rules:

1. The history is *suspected* when a list is older than the cache, and when a watch ended without an event and without a
   bookmark: a server accepts a watch of a version that it will only have in the future, and sends nothing.
2. A suspected server is asked for one object at the delivered version or newer. A server that has that version returns
   a list, and so does a proxy that answers from the past: nothing restarted, and older lists stay rejected. A server
   that does not have it answers 504, "Too large resource version".
3. After two such answers in a row the newest delivered objects are read live. An object with another version that is
   not above the delivered one proves another history. One that is newer, or has a version that the server claims not
   to have, proves that a server is only late.
4. If the objects prove nothing (they are deleted, unchanged, or may not be read), four answers in a row are a restart.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from konverge.cache.entries import parse_version
from konverge.cache.sink import Sink
from konverge.cache.source import Source
from konverge.errors import ApiError, ServerError
from konverge.objects import Key
from konverge.wire.list_watch import Selection
from konverge.wire.options import ListOptions

__all__ = ["HistoryCheck"]

_TOO_LARGE: Final = "ResourceVersionTooLarge"
_CURRENT: Final = re.compile(r"current: ([0-9]{1,19})\b")
_ANSWERS_BEFORE_READS: Final = 2
_ANSWERS_WITHOUT_PROOF: Final = 4
_OBJECTS: Final = 3


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


_object = msgspec.json.Decoder(_Object)


class HistoryCheck:
    """Finds out whether the server of one collection restarted its history: see the rules above."""

    def __init__(self, source: Source, sink: Sink, selection: Selection | None = None) -> None:
        self._source = source
        self._sink = sink
        self._selection = selection or Selection()
        self._answers = 0  # "Too large resource version" in a row
        self._pending = False

    @property
    def is_pending(self) -> bool:
        """Whether the server is to be asked before the next list or watch."""
        return self._pending and parse_version(self._sink.version) is not None

    def start(self) -> None:
        """Ask the server before the next list or watch."""
        self._pending = True

    def reset(self) -> None:
        """Suspect nothing any more."""
        self._pending = False
        self._answers = 0

    async def check(self) -> bool:
        """Ask the server once; return whether its history restarted. If it did not, nothing is suspected any more.

        Raises: the KonvergeError of a request that failed, and that of the server while the answer is open.
        """
        try:
            await self._source.list(self._probe())
        except ServerError as error:
            if not any(cause.reason == _TOO_LARGE for cause in error.causes):
                raise
            self._answers += 1
            found = await self._compare(error) if self._answers >= _ANSWERS_BEFORE_READS else None
            if found is None and self._answers < _ANSWERS_WITHOUT_PROOF:
                raise
            self.reset()
            return found is not False
        self.reset()
        return False

    def _probe(self) -> ListOptions:
        return ListOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            limit=1,
            resource_version=self._sink.version,
            resource_version_match="NotOlderThan",
        )

    async def _compare(self, error: ServerError) -> bool | None:
        """Read the newest objects; return whether they prove a restart or the opposite, None if neither."""
        delivered = parse_version(self._sink.version) or 0
        text = _CURRENT.search(str(error))
        current = int(text[1]) if text else delivered
        for key, version in self._sink.newest(_OBJECTS):
            live = await self._live_version(key)
            if live is None:
                continue
            if live > delivered or live == version > current:
                return False
            if live != version:
                return True
        return None

    async def _live_version(self, key: Key) -> int | None:
        """Read the version of an object from the server; None if it does not exist or may not be read."""
        get = getattr(self._source, "get", None)
        if get is None:
            return None
        try:
            return parse_version(_object.decode(await get(key)).metadata.resource_version)
        except (ApiError, msgspec.MsgspecError):
            return None
