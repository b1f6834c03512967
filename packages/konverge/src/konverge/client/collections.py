"""A collection whose lists and watches are bytes: the source of a cache."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from konverge.client.caller import Caller, RequestInfo
from konverge.objects import Key, Kind
from konverge.wire import ListOptions, Query, Request, Response, WatchOptions, collection_path, object_path

__all__ = ["Collection"]

_FULL = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Collection:
    """The objects of a kind in one namespace, or in all when `namespace` is "".

    Promises: each call is one request and is not retried: a reflector has its own backoff. With `metadata_only` the
    server sends only the metadata of each object. `can_stall` is True if a stream may stall without an error, as
    sockets do.
    """

    def __init__(
        self,
        caller: Caller,
        kind: Kind,
        *,
        namespace: str = "",
        metadata_only: bool = False,
        timeout: float = 60.0,
        extra_headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._caller = caller.without_retries()
        self.can_stall: bool = getattr(caller.transport, "can_stall", True)
        self._path = collection_path(kind, namespace)
        self._resource = kind
        self._kind = kind.kind
        self._namespace = namespace
        self._metadata_only = metadata_only
        self._timeout = timeout
        self._extra_headers = extra_headers

    async def list(self, options: ListOptions) -> bytes:
        """Request a list, or a page of it; return the body."""
        headers = {"accept": _METADATA_LIST if self._metadata_only else _FULL}
        return await self._caller.call(self._request(options.query(), headers), self._info("list"))

    async def watch(self, options: WatchOptions) -> Response:
        """Open a watch; the caller closes the response."""
        headers = {"accept": _METADATA if self._metadata_only else _FULL}
        return await self._caller.stream(self._request(options.query(), headers, stream=True), self._info("watch"))

    async def get(self, key: Key) -> bytes:
        """Read one object; return the body."""
        request = replace(self._request((), {"accept": _FULL}), path=object_path(self._resource, key))
        return await self._caller.call(request, RequestInfo("get", self._kind, str(key)))

    def _info(self, verb: str) -> RequestInfo:
        return RequestInfo(verb, self._kind, self._namespace)

    def _request(self, query: Query, headers: Mapping[str, str], *, stream: bool = False) -> Request:
        return Request(
            "GET",
            self._path,
            query=query,
            headers=headers,
            extra_headers=self._extra_headers,
            timeout=self._timeout,
            stream=stream,
        )
