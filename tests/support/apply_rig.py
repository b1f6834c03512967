"""A server, an applier with its cache, and another client that writes too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from konverge.cache import Cache, CacheOptions
from konverge.client import Client, WriteEvent
from konverge.errors import NotFound
from konverge.objects import Key, Resource, kind_of
from konverge.reconcile.apply import Applier, LastApplied
from konverge.telemetry import RequestRecord
from konverge.wire import Transport

__all__ = ["MANAGER", "ApplyRig", "apply_rig"]

MANAGER = "web-operator"


class ApplyRig:
    """`client` writes as the operator does and records its writes in the cache; `others` is another client.

    `sent` has the verbs of the operator's requests since it was last cleared.
    """

    def __init__(self, transport: Transport, cache: Cache, plain: Client, namespace: str) -> None:
        self.namespace = namespace
        self.cache = cache
        self.transport = transport
        self.others = plain.using(field_manager="other-client", namespace=namespace)
        self.sent: list[str] = []
        self.client = (
            plain.using(namespace=namespace).with_write_listener(self.record_write).with_observers(self._record_request)
        )
        self.applier = self.restarted()

    def restarted(self) -> Applier:
        """Return the applier of a process that has just started: it has no stored state."""
        self.last_applied = LastApplied(unchecked=0)
        self.applier = Applier(self.client, self.cache, field_manager=MANAGER, last_applied=self.last_applied)
        return self.applier

    def with_client(self, client: Client) -> Applier:
        """Return an applier with the same state that writes with another client."""
        return Applier(client, self.cache, field_manager=MANAGER, last_applied=self.last_applied)

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    async def seen(self, kind: type[Resource], name: str, *, namespace: str | None = None) -> None:
        """Wait until the cache has the same version of an object as the server."""
        key = Key(self.namespace if namespace is None else namespace, name)
        async with asyncio.timeout(60):
            while True:
                entry = self.cache.entry(kind_of(kind), key)
                try:
                    version = (await self.others.get(kind, key)).resource_version
                except NotFound:
                    version = ""
                if version == ("" if entry is None else str(entry.version)):
                    return
                await asyncio.sleep(0.05)

    async def live(self, kind: type[Resource], name: str) -> Any:
        """Return an object from the server, as JSON values."""
        return await self.others.get(kind_of(kind), self.key(name))

    def _record_request(self, record: RequestRecord) -> None:
        self.sent.append(record.verb)

    def record_write(self, write: WriteEvent) -> None:
        """Record a write of the operator in the cache."""
        if write.verb == "delete":
            self.cache.record_delete(write.kind, write.key, write.response, version=write.base_version)
        else:
            created = write.verb == "create"
            self.cache.record_write(write.kind, write.response, created=created, base_version=write.base_version)


@asynccontextmanager
async def apply_rig(transport: Transport, namespace: str, kinds: Iterable[type[Resource]]) -> AsyncIterator[ApplyRig]:
    """Open a rig that caches these kinds."""
    async with Client(transport) as client, Cache(client.collection, server=client) as cache:
        rig = ApplyRig(transport, cache, client, namespace)
        for kind in kinds:
            namespaces = (namespace,) if kind_of(kind).namespaced else None
            cache.declare(kind, CacheOptions(manager=MANAGER, namespaces=namespaces))
        await cache.wait_for_sync(timeout=60)
        yield rig
