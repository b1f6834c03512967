"""Watches: a stream of the events of a collection, from a version on.

Rules that every change to this file keeps:

1. Events are sent in the order of their revisions, each exactly once. A watch reads the collection's history from its
   own position. A watch that falls so far behind that the history no longer has its position is closed cleanly.
2. An event shows the object as it was at its revision. When an object stops matching, the event is DELETED, with the
   previous content at the new version; when it starts matching, the event is ADDED; other changes of objects that do
   not match are not sent.
3. A bookmark is sent only on request, and only when every event up to its version has been sent. It is newer than the
   version at which the watch started.
4. An event is encoded once for all watches in the same format.
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

_MIN_TIMEOUT: Final = 1800.0
_BOOKMARK_INTERVAL: Final = 60.0
_BOOKMARK_BEFORE_END: Final = 2.0
_BOOKMARK_MARGIN: Final = 1.0


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
    timeout = float(options.timeout or 0) or _MIN_TIMEOUT * (1.0 + cluster.rng.random())
    watch = _Watch(cluster, call, options, selection, timeout)
    try:
        watch.seek(version)
    except RevisionExpired as expired:
        return Response(200, _expired(expired), {"content-type": JSON})
    return Response(200, headers={"content-type": JSON}, stream=watch.run(version))


class _Watch:
    """One watch: its position in the history, its selection and its deadline."""

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
        self._cacheable = call.view.plain
        self._needs_headers = True
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + timeout
        self._position = 0
        self._sent_revision = 0
        self._wakeup = asyncio.Event()
        self._bookmark_revision = 0
        self._repeated = False  # whether the last bookmark was due at the revision of the one before
        self._resumed = False

    def seek(self, version: int) -> None:
        """Set the position from which events are sent; version 0 means the current revision.

        Raises: RevisionExpired when the history does not reach back to the version.
        """
        if not self._options.initial_events:
            self._sent_revision = version or self._cluster.storage.revision
            self._position = self._collection.position_after(self._sent_revision)

    async def run(self, version: int) -> AsyncGenerator[bytes, None]:
        """Yield the encoded events until the watch ends."""
        self._collection.subscribe(self, self._wakeup.set)
        self._cluster.watches[self] = (self._strategy.info.storage, self._stop)
        timer = self._loop.call_at(self._deadline, self._wakeup.set)
        try:
            async for chunk in self._events(version):
                yield chunk
        finally:
            timer.cancel()
            self._cluster.storage.cancel_call(self)
            self._collection.unsubscribe(self)
            del self._cluster.watches[self]

    def _stop(self) -> None:
        self._deadline = self._loop.time()
        self._wakeup.set()

    async def _events(self, version: int) -> AsyncGenerator[bytes, None]:
        if self._options.initial_events:
            try:
                await wait_for_revision(self._cluster, version)
            except status_errors.StatusError as error:
                yield _encode_frame("ERROR", encode(error.status))
                return
            async for chunk in self._initial():
                yield chunk
        async for chunk in self._live():
            yield chunk

    async def _initial(self) -> AsyncGenerator[bytes, None]:
        """Yield the current state as ADDED events, and the bookmark that ends the initial events."""
        revision = self._cluster.storage.revision
        entries = self._collection.entries(self._call.namespace)
        self._position = self._collection.position_after(revision)
        self._sent_revision = revision
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
            chunk = await self._frames_for(changes)
            if self._resumed:
                self._resumed, bookmark_at = False, self._next_bookmark()
            if loop.time() >= bookmark_at:
                chunk += self._progress_bookmark()
                bookmark_at = self._next_bookmark()
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
        self._wakeup.clear()
        if until >= self._deadline:
            await self._wakeup.wait()
            return
        timer = self._loop.call_at(until, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            timer.cancel()

    def _next_bookmark(self) -> float:
        """Return when the next bookmark is due: in a minute, or at the end if nothing has changed for two of them.

        An idle cluster then needs no timers, so that a virtual year of it takes no time.
        """
        if not self._options.bookmarks:
            return float("inf")
        now = self._loop.time()
        last = self._deadline - _BOOKMARK_BEFORE_END
        if now >= last - _BOOKMARK_MARGIN:
            return float("inf")
        storage = self._cluster.storage
        if self._repeated and storage.revision == self._bookmark_revision:
            storage.call_on_advance(self, self._resume)
            return last
        return min(now + _BOOKMARK_INTERVAL, last)

    def _resume(self) -> None:
        self._resumed = True
        self._wakeup.set()

    def _progress_bookmark(self) -> bytes:
        """Return a bookmark at the current revision; nothing while events are pending or the revision is unchanged."""
        revision = self._cluster.storage.revision
        if self._pending():
            return b""
        self._repeated, self._bookmark_revision = revision == self._bookmark_revision, revision
        return b"" if revision <= self._sent_revision else self._bookmark(revision)

    async def _frames_for(self, changes: list[Change]) -> bytes:
        self._position += len(changes)
        frames = []
        for change in changes:
            if change.revision <= self._sent_revision or not change.entry.key.startswith(self._prefix):
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
        return await self._frame(DELETED, _deleted_entry(change), change)

    async def _frame(self, kind: str, entry: Entry, change: Change | None) -> bytes:
        if not self._cacheable:
            return _encode_frame(kind, await self._render(entry))
        if change is None:
            return _encode_frame(kind, await object_bytes(self._cluster, self._strategy, entry))
        cache_key = (kind, self._strategy.info.kind.api_version, self._strategy.encoding_version)
        frame: bytes | None = change.cache.get(cache_key)
        if frame is None:
            frame = change.cache[cache_key] = _encode_frame(
                kind, await object_bytes(self._cluster, self._strategy, entry)
            )
        return frame

    async def _render(self, entry: Entry) -> bytes:
        document = await self._cluster.document(self._strategy, entry)
        if self._call.view.target == "Table":
            metadata = {"resourceVersion": document["metadata"]["resourceVersion"]}
            table = make_table(self._cluster, self._call, [document], metadata, headers=self._needs_headers)
            self._needs_headers = False
            return encode(table)
        return encode(partial_metadata(document, self._call.view))

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        if self._cacheable:
            return _encode_frame("BOOKMARK", object_prefix(self._strategy) + b'"metadata":' + encode(metadata) + b"}")
        partial = partial_metadata({"metadata": metadata}, self._call.view)
        if self._call.view.target != "Table":
            return _encode_frame("BOOKMARK", encode(partial))
        table = make_table(
            self._cluster, self._call, [], {"resourceVersion": str(revision)}, headers=self._needs_headers
        )
        self._needs_headers = False
        table["rows"] = [{"cells": ["", *[None] * (len(self._strategy.columns) - 1)], "object": partial}]
        return _encode_frame("BOOKMARK", encode(table))


def _expired(expired: RevisionExpired) -> bytes:
    error = status_errors.expired(f"too old resource version: {expired.revision} ({expired.oldest})")
    return _encode_frame("ERROR", encode(error.status))


def _encode_frame(kind: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)


def _deleted_entry(change: Change) -> Entry:
    """Return the entry of a DELETED event: the previous content at the revision of the change."""
    if change.kind == DELETED:
        return change.entry
    deleted: Entry | None = change.cache.get("deleted_entry")
    if deleted is None:
        previous = change.previous
        assert previous is not None
        document = decode(previous.raw)
        document["metadata"]["resourceVersion"] = str(change.revision)
        raw = encode(document)
        deleted = Entry(previous.key, raw, change.revision, previous.uid, previous.labels, previous.encoding_version)
        change.cache["deleted_entry"] = deleted
    return deleted
