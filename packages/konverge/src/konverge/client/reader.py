"""Reading: get, list, watch, logs, and waiting for something to come true.

What to read is given as a class (`Deployment`: typed objects come back), as a `Kind`, or as a name that people write
("deployments.apps"): then objects are `Unstructured`. A name without a namespace means the client's own namespace; a
list without one means all.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from random import Random
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

from konverge.client.caller import Asked, Caller, Observer, WriteGuard
from konverge.client.collections import Collection
from konverge.client.discovery import Discovery
from konverge.client.impersonation import Impersonation
from konverge.client.lists import Listing, WatchEvent, read_listing
from konverge.client.retry import Repeat, RetryPolicy
from konverge.client.selectors import Fields, Labels, field_text, label_text
from konverge.client.targets import KindName, Target, key_in, target_of, target_of_object
from konverge.client.waiting import Claim, Look
from konverge.errors import DecodeError, Expired, ServerError, TransportError, WaitTimeout
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured
from konverge.telemetry import log_request
from konverge.wire import (
    FrameReader,
    ListOptions,
    Query,
    Request,
    Transport,
    WatchOptions,
    collection_path,
    error_of_frame,
    object_path,
)

__all__ = ["Reader", "Settings"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)

VersionMatch: TypeAlias = Literal["", "Exact", "NotOlderThan"]

_JSON = {"accept": "application/json"}
_PAGE = 500
_POD = Kind("", "v1", "Pod", "pods")
_WATCH_AGAIN_AFTER = 1.0


@dataclass(frozen=True)
class Settings:
    """How a client asks; `Client.using` changes one for a while.

    `timeout` is how long a request may take in all: headers, body, and repeats. `field_validation` "Strict" makes the
    server refuse fields that it does not know; "" leaves it at its default, a warning.
    """

    namespace: str = "default"
    field_manager: str = "konverge"
    timeout: float = 60.0
    dry_run: bool = False
    field_validation: Literal["", "Strict", "Warn", "Ignore"] = ""
    impersonate: Impersonation | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise ValueError(f"timeout is a number of seconds above 0, got {self.timeout!r}")
        if not isinstance(self.impersonate, Impersonation | None):
            raise TypeError(f"impersonate takes Impersonation(user), got {self.impersonate!r:.100}")


class Reader:
    """The reading half of a `Client`, for whoever should not write.

    Promises: every refusal of the server is an ApiError of the right class that says what was asked; no answer is a
    TransportError; nothing of the HTTP library comes through; reads are repeated after a passing failure (see `retry`).
    """

    def __init__(
        self,
        transport: Transport,
        *,
        settings: Settings | None = None,
        retry: RetryPolicy | None = None,
        guard: WriteGuard | None = None,
        observers: tuple[Observer, ...] = (),
        random: Random | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._caller = Caller(transport, policy=retry, guard=guard, observers=(log_request, *observers), random=random)
        self.discovery = Discovery(self._caller)

    def using(self, **settings: Any) -> Self:
        """Give a client with other settings on the same connections: `client.using(dry_run=True)`."""
        twin = copy.copy(self)
        twin.settings = replace(self.settings, **settings)
        return twin

    def collection(self, kind: Kind, *, namespace: str = "", metadata_only: bool = False) -> Collection:
        """Give a collection to be read as bytes, request by request: what caches are fed from."""
        impersonate = self.settings.impersonate
        return Collection(
            self._caller,
            kind,
            namespace=namespace,
            metadata_only=metadata_only,
            timeout=self.settings.timeout,
            extra_headers=impersonate.headers() if impersonate else (),
        )

    async def close(self) -> None:
        """Close all connections, those of clients made by `using` included."""
        await self._caller.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Reading

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str | None = None) -> T: ...
    @overload
    async def get(self, kind: KindName, name: str | Key, *, namespace: str | None = None) -> Unstructured: ...
    async def get(self, kind: type[Any] | KindName, name: str | Key, *, namespace: str | None = None) -> Any:
        """Read one object.

        Raises: NotFound when it is not there.
        """
        target, key = await self._place(kind, name, namespace)
        request = self._request("GET", object_path(target.kind, key))
        return target.read(await self._call(request, "get", target.kind, key, repeat=Repeat.ANY))

    @overload
    async def list(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        match: VersionMatch = "",
    ) -> Listing[T]: ...
    @overload
    async def list(
        self,
        kind: KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        match: VersionMatch = "",
    ) -> Listing[Unstructured]: ...
    async def list(
        self,
        kind: type[Any] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        match: VersionMatch = "",
    ) -> Listing[Any]:
        """Read a collection in one request, of one namespace or of all; `labels` and `fields` are selectors.

        A selector is a text as kubectl takes it, a dict of what must be equal, or a LabelSelector or FieldSelector.
        """
        options = ListOptions(
            label_selector=label_text(labels),
            field_selector=field_text(fields),
            resource_version=resource_version,
            resource_version_match=match,
        )
        return await self._list(await target_of(kind, self.discovery), namespace, options)

    @overload
    def pages(
        self, kind: type[T], *, namespace: str = "", labels: Labels = "", fields: Fields = "", size: int = _PAGE
    ) -> AsyncIterator[Listing[T]]: ...
    @overload
    def pages(
        self, kind: KindName, *, namespace: str = "", labels: Labels = "", fields: Fields = "", size: int = _PAGE
    ) -> AsyncIterator[Listing[Unstructured]]: ...
    async def pages(
        self,
        kind: type[Any] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        size: int = _PAGE,
    ) -> AsyncIterator[Listing[Any]]:
        """Read a collection page by page; all pages show the state at one version.

        Raises: Expired when the version is compacted between two pages: start again.
        """
        target = await target_of(kind, self.discovery)
        options = ListOptions(label_selector=label_text(labels), field_selector=field_text(fields), limit=size)
        while True:
            page: Listing[Any] = await self._list(target, namespace, options)
            yield page
            if not page.continue_:
                return
            options = replace(options, continue_=page.continue_)

    @overload
    def watch(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        timeout: float | None = None,
    ) -> AsyncIterator[WatchEvent[T]]: ...
    @overload
    def watch(
        self,
        kind: KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        timeout: float | None = None,
    ) -> AsyncIterator[WatchEvent[Unstructured]]: ...
    async def watch(
        self,
        kind: type[Any] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        timeout: float | None = None,
    ) -> AsyncIterator[WatchEvent[Any]]:
        """Follow the changes of a collection from a version on; without one, what is there comes first, as ADDED.

        One stream is followed to its end, which the server sets after some minutes at the latest (or after `timeout`
        seconds). Leave the loop inside `contextlib.aclosing` to let go of the connection at once.

        Raises: Expired when the version is compacted: list again; DecodeError when the stream is broken.
        """
        target = await target_of(kind, self.discovery)
        options = WatchOptions(
            label_selector=label_text(labels),
            field_selector=field_text(fields),
            resource_version=resource_version,
            bookmarks=False,
            timeout=timeout,
        )
        async with aclosing(self._watch(target, namespace, options)) as events:
            async for event in events:
                yield event

    @overload
    async def wait_for(
        self, kind: type[T], name: str | Key, claim: Look, *, namespace: str | None = None, timeout: float = 60.0
    ) -> T | None: ...
    @overload
    async def wait_for(
        self, kind: KindName, name: str | Key, claim: Look, *, namespace: str | None = None, timeout: float = 60.0
    ) -> Unstructured | None: ...
    async def wait_for(
        self,
        kind: type[Any] | KindName,
        name: str | Key,
        claim: Look,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> Any:
        """Follow one object until the claim about it holds, and give it as it is then (None when it is not there).

        `konverge.client.waiting` has ready-made claims: exists, deleted, condition, field_is, rolled_out.

        Raises: WaitTimeout after `timeout` seconds, with what was seen last.
        """
        target, key = await self._place(kind, name, namespace)
        object_path(target.kind, key)  # refuses a key that no object can have, which would be waited for in vain
        seen: Any = None
        try:
            async with asyncio.timeout(timeout), aclosing(self._states(target, key)) as states:
                async for seen in states:
                    if claim(seen):
                        return seen
        except TimeoutError:
            words = claim if isinstance(claim, Claim) else "satisfies the claim"
            last = f"at version {seen.resource_version}" if seen is not None else "not there"
            text = f"wait until {target.kind.kind} {key} {words}: not within {timeout:g} s (last seen {last})"
            raise WaitTimeout(text) from None
        raise AssertionError("the states of an object never end")

    def logs(
        self,
        pod: str | Key,
        *,
        namespace: str | None = None,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since: float | None = None,
    ) -> AsyncIterator[bytes]:
        """Read the log of a pod line by line, without the line ends; with `follow`, for as long as it grows.

        `since` is how many seconds to look back. Leave the loop inside `contextlib.aclosing` to let go at once.
        """
        key = key_in(_POD, pod, namespace, self.settings.namespace)
        options = {
            "container": container,
            "follow": "true" if follow else "",
            "previous": "true" if previous else "",
            "tailLines": "" if tail_lines is None else str(tail_lines),
            "sinceSeconds": "" if since is None else str(max(1, math.ceil(since))),
        }
        query = tuple(option for option in options.items() if option[1])
        return self._log_lines(self._request("GET", object_path(_POD, key, subresource="log"), query=query), key)

    # How it is asked

    async def _log_lines(self, request: Request, key: Key) -> AsyncIterator[bytes]:
        request = replace(request, stream=True, headers={"accept": "*/*"})
        rest = b""
        async with await self._caller.stream(request, Asked("read the log of", "Pod", str(key))) as response:
            async for chunk in response.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line
        if rest:
            yield rest

    async def _states(self, target: Target[Any], key: Key) -> AsyncGenerator[Any]:
        """Give the state of one object now and after each change, for ever; a stream that ends is taken up again."""
        only = ListOptions(field_selector=f"metadata.name={key.name}")
        while True:
            now: Listing[Any] = await self._list(target, key.namespace, only)
            yield now[0] if now else None
            since = WatchOptions(
                field_selector=only.field_selector, resource_version=now.resource_version, bookmarks=False
            )
            with suppress(Expired, DecodeError, TransportError, ServerError):
                async with aclosing(self._watch(target, key.namespace, since)) as changes:
                    async for event in changes:
                        yield None if event.type == "DELETED" else event.object
            await asyncio.sleep(_WATCH_AGAIN_AFTER)

    async def _list(self, target: Target[Any], namespace: str, options: ListOptions) -> Listing[Any]:
        request = self._request("GET", collection_path(target.kind, namespace), query=options.query())
        body = await self._call(request, "list", target.kind, Key(namespace, ""), repeat=Repeat.ANY)
        return read_listing(target, body)

    async def _watch(
        self, target: Target[Any], namespace: str, options: WatchOptions
    ) -> AsyncGenerator[WatchEvent[Any]]:
        asked = Asked("watch", target.kind.kind, namespace)
        request = self._request("GET", collection_path(target.kind, namespace), query=options.query(), stream=True)
        reader = FrameReader()
        async with await self._caller.stream(request, asked) as response:
            async for chunk in response.chunks():
                for frame in reader.feed(chunk):
                    if frame.type == "ERROR":
                        raise error_of_frame(frame, verb=asked.verb, kind=asked.kind, key=asked.key)
                    yield WatchEvent(frame.type, target.read(bytes(frame.object)))
            reader.close()

    async def _place(self, kind: Any, name: str | Key, namespace: str | None) -> tuple[Target[Any], Key]:
        target = await target_of(kind, self.discovery)
        return target, key_in(target.kind, name, namespace, self.settings.namespace)

    async def _of(self, obj: R) -> tuple[Target[R], Key]:
        target = await target_of_object(obj, self.discovery)
        return target, key_in(target.kind, obj.name, obj.namespace or None, self.settings.namespace)

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        media: str = "application/json",
        stream: bool = False,
    ) -> Request:
        impersonate = self.settings.impersonate
        return Request(
            method,
            path,
            query=query,
            headers={**_JSON, "content-type": media} if body else _JSON,
            extra_headers=impersonate.headers() if impersonate else (),
            body=body,
            timeout=self.settings.timeout,
            stream=stream,
        )

    async def _call(
        self, request: Request, verb: str, kind: Kind, key: Key, *, repeat: Repeat = Repeat.UNREAD
    ) -> bytes:
        asked = Asked(verb, kind.kind, str(key) if key.name else key.namespace)
        return await self._caller.call(request, asked, repeat=repeat)
