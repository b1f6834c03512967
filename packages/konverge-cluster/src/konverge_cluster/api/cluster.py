"""What every function of the API works on: the storage, what is served, who admits, and the clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from konverge.objects import wall_clock
from konverge_cluster.api.admission import Admission
from konverge_cluster.api.registry import Registry
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.patches.endpoints import Endpoint
from konverge_cluster.storage import Collection, Entry, Storage

__all__ = ["Cluster", "decode", "encode", "key_of"]

decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode
# Sorted keys make equal objects equal bytes, however their writer ordered them.
encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def key_of(namespace: str, name: str) -> str:
    """The storage key of an object."""
    return f"{namespace}/{name}" if namespace else name


class Cluster:
    """One cluster's state and rules.

    `clock` is the wall clock in seconds, the only source of timestamps; `rng` is the only source of chance (uids,
    generated names, watch timeouts), so that a seed makes a run repeatable.
    """

    def __init__(
        self,
        *,
        storage: Storage | None = None,
        registry: Registry | None = None,
        clock: Callable[[], float] = wall_clock,
        seed: int | None = None,
    ) -> None:
        self.storage = storage or Storage()
        self.registry = registry or Registry()
        self.admission: list[Admission] = []
        self.clock = clock
        self.rng = random.Random(seed)
        self.endpoints: dict[tuple[str, ...], tuple[Strategy, Endpoint]] = {}
        self.watches: dict[object, tuple[tuple[str, str], Callable[[], None]]] = {}
        self._second = -1
        self._text = ""

    def now(self) -> str:
        """The present as the API writes it, in whole seconds."""
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._text

    def new_uid(self) -> str:
        """A random UUID of version 4."""
        digits = f"{self.rng.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def end_watches(self, stored: tuple[str, str] | None = None) -> None:
        """End every watch that is going on, or those of one collection, as its timeout would."""
        for where, end in list(self.watches.values()):
            if stored is None or where == stored:
                end()

    def collection(self, strategy: Strategy) -> Collection:
        return self.storage.collection(strategy.info.storage)

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Document | None:
        """The stored document of an object, without kind and apiVersion, or None."""
        entry = self.storage.collection((group, plural)).get(key_of(namespace, name))
        return decode(entry.raw) if entry is not None else None

    async def document(self, strategy: Strategy, entry: Entry) -> Document:
        """A private copy of an object in the strategy's version."""
        return (await self.documents(strategy, [entry]))[0]

    async def documents(self, strategy: Strategy, entries: list[Entry]) -> list[Document]:
        """Private copies of objects in the strategy's version, in order; conversions are asked for together."""
        found: list[Document] = [decode(entry.raw) for entry in entries]
        foreign = [index for index, entry in enumerate(entries) if entry.encoding_version != strategy.encoding_version]
        if foreign:
            converted = await strategy.from_storage(
                [(found[index], entries[index].encoding_version) for index in foreign]
            )
            for index, document in zip(foreign, converted, strict=True):
                found[index] = document
        kind = strategy.info.kind
        for document in found:
            document["kind"] = kind.kind
            document["apiVersion"] = kind.api_version
        return found
