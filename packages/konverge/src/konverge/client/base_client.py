"""What the verbs of a client share: its options, its connections, and how a request is built and sent."""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import Any, Self, TypeVar

from konverge.client.caller import Caller, Observer, RequestInfo, WriteGuard
from konverge.client.collections import Collection
from konverge.client.discovery import Discovery
from konverge.client.options import ClientOptions
from konverge.client.retry import RetryMode, RetryPolicy
from konverge.client.targets import Target, resolve_key, resolve_object_target, resolve_target
from konverge.objects import AnyObject, Key, Kind
from konverge.telemetry import log_request
from konverge.wire import Query, Request, Transport

__all__ = ["BaseClient"]

R = TypeVar("R", bound=AnyObject)

_JSON = {"accept": "application/json"}
_UNKNOWN = object()


class BaseClient:
    """A client without verbs."""

    def __init__(
        self,
        transport: Transport,
        *,
        options: ClientOptions | None = None,
        retry: RetryPolicy | None = None,
        guard: WriteGuard | None = None,
        observers: tuple[Observer, ...] = (),
        random: Random | None = None,
    ) -> None:
        self.options = options or ClientOptions()
        self._caller = Caller(transport, policy=retry, guard=guard, observers=(log_request, *observers), random=random)
        self.discovery = Discovery(self._caller)

    def __copy__(self) -> Self:
        clone = object.__new__(type(self))  # a fifth of the time that `copy` needs without this
        clone.__dict__.update(self.__dict__)
        return clone

    def using(self, **options: Any) -> Self:
        """Return a client with other options on the same connections: `client.using(dry_run=True)`."""
        if all(getattr(self.options, name, _UNKNOWN) == value for name, value in options.items()):
            return self
        clone = copy.copy(self)
        clone.options = replace(self.options, **options)
        return clone

    def collection(self, kind: Kind, *, namespace: str = "", metadata_only: bool = False) -> Collection:
        """Return a collection whose lists and watches are bytes, as caches read them."""
        impersonate = self.options.impersonate
        return Collection(
            self._caller,
            kind,
            namespace=namespace,
            metadata_only=metadata_only,
            timeout=self.options.timeout,
            extra_headers=impersonate.headers() if impersonate else (),
        )

    async def close(self) -> None:
        """Close all connections, including those of clients returned by `using`."""
        await self._caller.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _resolve(self, kind: Any, name: str | Key, namespace: str | None) -> tuple[Target[Any], Key]:
        target = await resolve_target(kind, self.discovery)
        return target, resolve_key(target.kind, name, namespace, self.options.namespace)

    async def _resolve_object(self, obj: R) -> tuple[Target[R], Key]:
        target = await resolve_object_target(obj, self.discovery)
        return target, resolve_key(target.kind, obj.name, obj.namespace or None, self.options.namespace)

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
        impersonate = self.options.impersonate
        return Request(
            method,
            path,
            query=query,
            headers={**_JSON, "content-type": media} if body else _JSON,
            extra_headers=impersonate.headers() if impersonate else (),
            body=body,
            timeout=self.options.timeout,
            stream=stream,
        )

    async def _call(
        self, request: Request, verb: str, kind: Kind, key: Key, *, retry: RetryMode = RetryMode.UNPROCESSED
    ) -> bytes:
        info = RequestInfo(verb, kind.kind, str(key) if key.name else key.namespace)
        return await self._caller.call(request, info, retry=retry)
