"""Watch: a stream of what happens to the objects of a collection, from a version on.

Rules that every change to this file keeps:

1. Events come in the order of their revisions, each once, none left out. A watcher reads the collection's history from
   its own place; one that falls so far behind that the history has moved past it is ended, cleanly.
2. An event shows the object as it was at its revision. An object that no longer matches is DELETED with its former
   content at the new version; one that begins to match is ADDED; changes out of sight are not told.
3. A bookmark is sent only when asked for, and only when everything up to its version has been told. It is newer than
   the version that the watch began with.
4. An event is encoded once for all who watch in the same form.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode, encode
from konverge_cluster.api.negotiation import STREAMS
from konverge_cluster.api.options import ListOptions, unsigned
from konverge_cluster.api.reads import wait_for_revision
from konverge_cluster.api.responses import Response
from konverge_cluster.api.selections import Selection
from konverge_cluster.api.views import make_table, object_bytes, object_prefix, partial_metadata
from konverge_cluster.storage import ADDED, DELETED, MODIFIED, Change, Entry, RevisionExpired

__all__ = ["handle_watch"]

_SHORTEST: Final = 1800.0
_BOOKMARK_EVERY: Final = 60.0
_BOOKMARK_BEFORE_END: Final = 2.0
_BOOKMARK_ROUND: Final = 1.0


async def handle_watch(cluster: Cluster, call: Call) -> Response:
    if call.view.media != JSON:
        raise status_errors.not_acceptable(STREAMS)
    options = ListOptions.read(call.query, watch=True)
    selection = Selection.read(call.strategy, options, call.name)
    try:
        version = unsigned(options.resource_version) if options.resource_version else 0
    except ValueError as error:
        text = f'resourceVersion: Invalid value: "{options.resource_version}": {error}'
        raise status_errors.failure(500, text) from None
    timeout = float(options.timeout or 0) or _SHORTEST * (1.0 + cluster.rng.random())
    watch = _Watch(cluster, call, options, selection, timeout)
    try:
        watch.begin(version)
    except RevisionExpired as forgotten:
        return Response(200, _expired(forgotten), {"content-type": JSON})
    return Response(200, headers={"content-type": JSON}, stream=watch.run(version))


class _Watch:
    """One watcher: where it is in the history, what it wants to see, and when it ends."""

    def __init__(
        self, cluster: Cluster, call: Call, options: ListOptions, selection: Selection, timeout: float
    ) -> None:
        self._cluster = cluster
        self._call = call
        self._strategy = call.strategy
        self._collection = cluster.collection(call.strategy)
        self._options = options
        self._selection = selection
        self._prefix = f"{call.namespace}/" if call.namespace else ""
        self._shared = call.view.plain
        self._headers_due = True
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + timeout
        self._position = 0
        self._told = 0
        self._woken = asyncio.Event()

    def begin(self, version: int) -> None:
        """Take the place from which changes are told; 0 means from now on.

        Raises: Forgotten when the history does not reach back to the version.
        """
        if not self._options.initial_events:
            self._told = version or self._cluster.storage.revision
            self._position = self._collection.position_after(self._told)

    async def run(self, version: int) -> AsyncGenerator[bytes, None]:
        """The stream, from the first event to its end."""
        self._collection.subscribe(self, self._woken.set)
        self._cluster.watches[self] = (self._strategy.info.storage, self._end)
        timer = self._loop.call_at(self._deadline, self._woken.set)
        try:
            async for chunk in self._events(version):
                yield chunk
        finally:
            timer.cancel()
            self._collection.unsubscribe(self)
            del self._cluster.watches[self]

    def _end(self) -> None:
        self._deadline = self._loop.time()
        self._woken.set()

    async def _events(self, version: int) -> AsyncGenerator[bytes, None]:
        if self._options.initial_events:
            try:
                await wait_for_revision(self._cluster, version)
            except status_errors.StatusError as refusal:
                yield _framed("ERROR", encode(refusal.status))
                return
            async for chunk in self._initial():
                yield chunk
        async for chunk in self._live():
            yield chunk

    async def _initial(self) -> AsyncGenerator[bytes, None]:
        """The present state as ADDED events, and the bookmark that says so."""
        revision = self._cluster.storage.revision
        entries = self._collection.entries(self._call.namespace)
        self._position = self._collection.position_after(revision)
        self._told = revision
        await self._selection.prepare(self._cluster, entries)
        frames = [await self._frame(ADDED, entry, None) for entry in entries if self._selection.matches(entry)]
        if self._options.bookmarks:
            frames.append(self._bookmark(revision, {"k8s.io/initial-events-end": "true"}))
        if frames:
            yield b"".join(frames)

    async def _live(self) -> AsyncGenerator[bytes, None]:
        loop, bookmark_at = self._loop, self._next_bookmark()
        while True:
            changes = self._collection.changes_from(self._position)
            if changes is None:
                return
            chunk = await self._told_of(changes)
            if loop.time() >= bookmark_at:
                bookmark_at = self._next_bookmark()
                chunk += self._progress()
            if chunk:
                yield chunk
            if loop.time() >= self._deadline:
                return
            if not self._pending():
                await self._wait(bookmark_at)

    def _pending(self) -> bool:
        changes = self._collection.changes_from(self._position)
        return changes is None or bool(changes)

    async def _wait(self, until: float) -> None:
        self._woken.clear()
        if until >= self._deadline:
            await self._woken.wait()
            return
        timer = self._loop.call_at(until, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def _next_bookmark(self) -> float:
        if not self._options.bookmarks:
            return float("inf")
        now = self._loop.time()
        last = self._deadline - _BOOKMARK_BEFORE_END
        if now >= last - _BOOKMARK_ROUND:
            return float("inf")
        return min(now + _BOOKMARK_EVERY, last)

    def _progress(self) -> bytes:
        """A bookmark at the present revision, when everything up to it has been told and time has passed at all."""
        revision = self._cluster.storage.revision
        return b"" if self._pending() or revision <= self._told else self._bookmark(revision)

    async def _told_of(self, changes: list[Change]) -> bytes:
        self._position += len(changes)
        frames = []
        for change in changes:
            if change.revision <= self._told or not change.entry.key.startswith(self._prefix):
                continue
            frame = await self._event(change)
            if frame:
                frames.append(frame)
        return b"".join(frames)

    async def _event(self, change: Change) -> bytes:
        if self._selection.everything:
            return await self._frame(change.kind, change.entry, change)
        await self._selection.prepare(self._cluster, (change.entry, change.previous))
        after = change.kind != DELETED and self._selection.matches(change.entry)
        before = change.previous is not None and self._selection.matches(change.previous)
        if after:
            return await self._frame(MODIFIED if before else ADDED, change.entry, change)
        if not before:
            return b""
        return await self._frame(DELETED, _departed(change), change)

    async def _frame(self, kind: str, entry: Entry, change: Change | None) -> bytes:
        if not self._shared:
            return _framed(kind, await self._rendered(entry))
        if change is None:
            return _framed(kind, await object_bytes(self._cluster, self._strategy, entry))
        mark = (kind, self._strategy.info.kind.api_version, self._strategy.encoding_version)
        frame: bytes | None = change.cache.get(mark)
        if frame is None:
            frame = change.cache[mark] = _framed(kind, await object_bytes(self._cluster, self._strategy, entry))
        return frame

    async def _rendered(self, entry: Entry) -> bytes:
        document = await self._cluster.document(self._strategy, entry)
        if self._call.view.target == "Table":
            metadata = {"resourceVersion": document["metadata"]["resourceVersion"]}
            table = make_table(self._cluster, self._call, [document], metadata, headers=self._headers_due)
            self._headers_due = False
            return encode(table)
        return encode(partial_metadata(document, self._call.view))

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        if self._shared:
            return _framed("BOOKMARK", object_prefix(self._strategy) + b'"metadata":' + encode(metadata) + b"}")
        partial = partial_metadata({"metadata": metadata}, self._call.view)
        if self._call.view.target != "Table":
            return _framed("BOOKMARK", encode(partial))
        table = make_table(self._cluster, self._call, [], {"resourceVersion": str(revision)}, headers=self._headers_due)
        self._headers_due = False
        table["rows"] = [{"cells": ["", *[None] * (len(self._strategy.columns) - 1)], "object": partial}]
        return _framed("BOOKMARK", encode(table))


def _expired(forgotten: RevisionExpired) -> bytes:
    refusal = status_errors.expired(f"too old resource version: {forgotten.revision} ({forgotten.oldest})")
    return _framed("ERROR", encode(refusal.status))


def _framed(kind: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)


def _departed(change: Change) -> Entry:
    """The former content of an object that is gone from sight, at the revision of its going."""
    if change.kind == DELETED:
        return change.entry
    departed: Entry | None = change.cache.get("departed")
    if departed is None:
        former = change.previous
        assert former is not None
        document = decode(former.raw)
        document["metadata"]["resourceVersion"] = str(change.revision)
        raw = encode(document)
        departed = Entry(former.key, raw, change.revision, former.uid, former.labels, former.encoding_version)
        change.cache["departed"] = departed
    return departed
