"""A server, an applier on it with the cache that it reads, and somebody else who writes too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from konverge.cache import Cache, CacheOptions
from konverge.client import Client, Written
from konverge.errors import NotFound
from konverge.objects import Key, Resource, kind_of
from konverge.reconcile.apply import Applier, Memory
from konverge.telemetry import RequestRecord
from konverge.wire import Transport

__all__ = ["MANAGER", "ApplyRig", "apply_rig"]

MANAGER = "web-operator"


class ApplyRig:
    """`client` writes as the operator does and tells the cache; `others` write as somebody else, and tell nobody.

    `sent` is what the operator asked of the server since it was last cleared, verb by verb.
    """

    def __init__(self, transport: Transport, cache: Cache, plain: Client, namespace: str) -> None:
        self.namespace = namespace
        self.cache = cache
        self.transport = transport
        self.others = plain.using(field_manager="somebody-else", namespace=namespace)
        self.sent: list[str] = []
        self.client = plain.using(namespace=namespace).telling(self._written).observed(self._exchanged)
        self.applier = self.restarted()

    def restarted(self) -> Applier:
        """Give the applier of a process that has just started: it remembers nothing."""
        self.memory = Memory()
        self.applier = Applier(self.client, self.cache, field_manager=MANAGER, memory=self.memory)
        return self.applier

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    async def seen(self, kind: type[Resource], name: str, *, namespace: str | None = None) -> None:
        """Wait until the cache shows an object as the server has it."""
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
        """Give an object as the server has it, as plain JSON values."""
        return await self.others.get(kind_of(kind), self.key(name))

    def _exchanged(self, record: RequestRecord) -> None:
        self.sent.append(record.verb)

    def _written(self, written: Written) -> None:
        if written.verb == "delete":
            self.cache.note_delete(written.kind, written.key, written.answer, version=written.base_version)
        else:
            created = written.verb == "create"
            self.cache.note_write(written.kind, written.answer, created=created, base_version=written.base_version)


@asynccontextmanager
async def apply_rig(transport: Transport, namespace: str, kinds: Iterable[type[Resource]]) -> AsyncIterator[ApplyRig]:
    """Open a rig that keeps these kinds."""
    async with Client(transport) as client, Cache(client.collection, server=client) as cache:
        rig = ApplyRig(transport, cache, client, namespace)
        for kind in kinds:
            namespaces = (namespace,) if kind_of(kind).namespaced else None
            cache.declare(kind, CacheOptions(manager=MANAGER, namespaces=namespaces))
        await cache.wait_for_sync(timeout=60)
        yield rig
