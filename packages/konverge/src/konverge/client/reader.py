"""The verbs that read: get, list, watch, logs and wait.

The kind is a class (`Deployment`: the result is typed), a `Kind`, or a name as kubectl takes it ("deployments.apps");
with the latter two the result is `Unstructured`. A name without a namespace refers to the client's namespace; a list
without one covers all namespaces.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Literal, TypeAlias, TypeVar, overload

from msgspec.structs import replace

from konverge.client.base_client import BaseClient
from konverge.client.caller import RequestInfo
from konverge.client.lists import ObjectList, WatchEvent, decode_object_list
from konverge.client.retry import RetryMode
from konverge.client.selectors import Fields, Labels, field_text, label_text
from konverge.client.targets import KindName, Target, resolve_key, resolve_target
from konverge.client.wait import ConditionFunc, WaitCondition
from konverge.errors import DecodeError, Expired, ServerError, TransportError, WaitTimeout
from konverge.objects import Key, Kind, Resource, Unstructured
from konverge.wire import (
    FrameReader,
    ListOptions,
    Request,
    WatchOptions,
    collection_path,
    error_from_frame,
    object_path,
)

__all__ = ["Reader"]

T = TypeVar("T", bound=Resource)

VersionMatch: TypeAlias = Literal["", "Exact", "NotOlderThan"]

_PAGE = 500
_POD = Kind("", "v1", "Pod", "pods")
_WATCH_RETRY_DELAY = 1.0


class Reader(BaseClient):
    """The part of a `Client` that reads, for code that must not write.

    Promises: an error response raises the matching subclass of ApiError, which names verb, kind and key; a missing
    response raises TransportError; no exception of the HTTP library gets out; reads are retried after a transient
    failure (see `retry`).
    """

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str | None = None) -> T: ...
    @overload
    async def get(self, kind: KindName, name: str | Key, *, namespace: str | None = None) -> Unstructured: ...
    async def get(self, kind: type[Any] | KindName, name: str | Key, *, namespace: str | None = None) -> Any:
        """Read one object.

        Raises: NotFound when it does not exist.
        """
        target, key = await self._resolve(kind, name, namespace)
        request = self._request("GET", object_path(target.kind, key))
        return target.decode(await self._call(request, "get", target.kind, key, retry=RetryMode.IDEMPOTENT))

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
    ) -> ObjectList[T]: ...
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
    ) -> ObjectList[Unstructured]: ...
    async def list(
        self,
        kind: type[Any] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        resource_version: str = "",
        match: VersionMatch = "",
    ) -> ObjectList[Any]:
        """List a collection in one request, in one namespace or in all; `labels` and `fields` are selectors.

        A selector is a string as kubectl takes it, a dict of names and values, a LabelSelector or a FieldSelector.
        """
        options = ListOptions(
            label_selector=label_text(labels),
            field_selector=field_text(fields),
            resource_version=resource_version,
            resource_version_match=match,
        )
        return await self._list(await resolve_target(kind, self.discovery), namespace, options)

    @overload
    def pages(
        self, kind: type[T], *, namespace: str = "", labels: Labels = "", fields: Fields = "", size: int = _PAGE
    ) -> AsyncIterator[ObjectList[T]]: ...
    @overload
    def pages(
        self, kind: KindName, *, namespace: str = "", labels: Labels = "", fields: Fields = "", size: int = _PAGE
    ) -> AsyncIterator[ObjectList[Unstructured]]: ...
    async def pages(
        self,
        kind: type[Any] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        size: int = _PAGE,
    ) -> AsyncIterator[ObjectList[Any]]:
        """List a collection in pages; all pages are of the same resource version.

        Raises: Expired when the version is compacted between two pages: start from the first page.
        """
        target = await resolve_target(kind, self.discovery)
        options = ListOptions(label_selector=label_text(labels), field_selector=field_text(fields), limit=size)
        while True:
            page: ObjectList[Any] = await self._list(target, namespace, options)
            yield page
            if not page.continue_:
                return
            options = dataclasses.replace(options, continue_=page.continue_)

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
        """Watch a collection from a version on; without a version, the existing objects come first, as ADDED.

        The iteration ends with the stream, which the server closes after some minutes at the latest (or after `timeout`
        seconds). Wrap the iterator in `contextlib.aclosing` to close the connection when the loop is left early.

        Raises: Expired when the version is compacted: list again; DecodeError when the stream is broken.
        """
        target = await resolve_target(kind, self.discovery)
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
        self,
        kind: type[T],
        name: str | Key,
        condition: ConditionFunc,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> T | None: ...
    @overload
    async def wait_for(
        self,
        kind: KindName,
        name: str | Key,
        condition: ConditionFunc,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> Unstructured | None: ...
    async def wait_for(
        self,
        kind: type[Any] | KindName,
        name: str | Key,
        condition: ConditionFunc,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> Any:
        """Watch one object until the condition holds, and return its state then (None if it does not exist).

        `konverge.client` has conditions: exists, is_deleted, has_condition, field_equals, is_deployment_complete.

        Raises: WaitTimeout after `timeout` seconds, with the last observed version.
        """
        target, key = await self._resolve(kind, name, namespace)
        object_path(target.kind, key)  # raises for a key that no object can have: the wait would never end
        last: Any = None
        try:
            async with asyncio.timeout(timeout), aclosing(self._states(target, key)) as states:
                async for last in states:
                    if condition(last):
                        return last
        except TimeoutError:
            description = condition if isinstance(condition, WaitCondition) else "meets the condition"
            state = f"at version {last.resource_version}" if last is not None else "absent"
            text = f"wait until {target.kind.kind} {key} {description}: not within {timeout:g} s (last seen {state})"
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
        """Read the log of a pod line by line, without line ends; with `follow`, until the container ends.

        `since` limits the log to the last so many seconds. Wrap the iterator in `contextlib.aclosing` to close the
        connection when the loop is left early.
        """
        key = resolve_key(_POD, pod, namespace, self.options.namespace)
        options = {
            "container": container,
            "follow": "true" if follow else "",
            "previous": "true" if previous else "",
            "tailLines": "" if tail_lines is None else str(tail_lines),
            "sinceSeconds": "" if since is None else str(max(1, math.ceil(since))),
        }
        query = tuple(option for option in options.items() if option[1])
        return self._log_lines(self._request("GET", object_path(_POD, key, subresource="log"), query=query), key)

    async def _log_lines(self, request: Request, key: Key) -> AsyncIterator[bytes]:
        request = replace(request, stream=True, headers={"accept": "*/*"})
        rest = b""
        async with await self._caller.stream(request, RequestInfo("read the log of", "Pod", str(key))) as response:
            async for chunk in response.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line
        if rest:
            yield rest

    async def _states(self, target: Target[Any], key: Key) -> AsyncGenerator[Any]:
        """Yield the state of one object now and after each change, for ever; watch again when the stream ends."""
        only = ListOptions(field_selector=f"metadata.name={key.name}")
        while True:
            listed: ObjectList[Any] = await self._list(target, key.namespace, only)
            yield listed[0] if listed else None
            options = WatchOptions(
                field_selector=only.field_selector, resource_version=listed.resource_version, bookmarks=False
            )
            with suppress(Expired, DecodeError, TransportError, ServerError):
                async with aclosing(self._watch(target, key.namespace, options)) as events:
                    async for event in events:
                        yield None if event.type == "DELETED" else event.object
            await asyncio.sleep(_WATCH_RETRY_DELAY)

    async def _list(self, target: Target[Any], namespace: str, options: ListOptions) -> ObjectList[Any]:
        request = self._request("GET", collection_path(target.kind, namespace), query=options.query())
        body = await self._call(request, "list", target.kind, Key(namespace, ""), retry=RetryMode.IDEMPOTENT)
        return decode_object_list(target, body)

    async def _watch(
        self, target: Target[Any], namespace: str, options: WatchOptions
    ) -> AsyncGenerator[WatchEvent[Any]]:
        info = RequestInfo("watch", target.kind.kind, namespace)
        request = self._request("GET", collection_path(target.kind, namespace), query=options.query(), stream=True)
        reader = FrameReader()
        async with await self._caller.stream(request, info) as response:
            async for chunk in response.chunks():
                for frame in reader.feed(chunk):
                    if frame.type == "ERROR":
                        raise error_from_frame(frame, verb=info.verb, kind=info.kind, key=info.key)
                    yield WatchEvent(frame.type, target.decode(bytes(frame.object)))
            reader.close()
