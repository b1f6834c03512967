"""The state that every API function works on: storage, registry, admission chain, clock and random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from konverge.objects import wall_clock
from konverge_cluster.api.admission import Admission
from konverge_cluster.api.authorization import AlwaysAllow, Authorizer
from konverge_cluster.api.registry import Registry
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.patches.endpoints import Endpoint
from konverge_cluster.storage import Collection, Entry, Storage

__all__ = ["Cluster", "decode", "encode", "key_of"]

decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode
# With sorted keys equal objects have equal bytes, whatever the order in the request.
encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def key_of(namespace: str, name: str) -> str:
    """Return the storage key of an object."""
    return f"{namespace}/{name}" if namespace else name


class Cluster:
    """The state and the rules of one cluster.

    `authorizer` decides which requests are allowed; by default all are.

    `clock` is the wall clock in seconds, the only source of timestamps. `rng` is the only source of random numbers
    (uids, generated names, watch timeouts), so a seed makes a run repeatable.
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
        self.authorizer: Authorizer = AlwaysAllow()
        self.clock = clock
        self.rng = random.Random(seed)
        self.endpoints: dict[tuple[str, ...], tuple[Strategy, Endpoint]] = {}
        self.watches: dict[object, tuple[tuple[str, str], Callable[[], None]]] = {}
        self._cached_second = -1
        self._cached_text = ""

    def now(self) -> str:
        """Return the current time in the format of the API, in whole seconds."""
        second = int(self.clock())
        if second != self._cached_second:
            self._cached_second = second
            self._cached_text = self.time_text(second)
        return self._cached_text

    @staticmethod
    def time_text(seconds: float) -> str:
        """Return a time in the format of the API, in whole seconds."""
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_uid(self) -> str:
        """Return a random UUID of version 4."""
        digits = f"{self.rng.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def end_watches(self, stored: tuple[str, str] | None = None) -> None:
        """End all open watches, or those of one collection, as a timeout does."""
        for collection, end in list(self.watches.values()):
            if stored is None or collection == stored:
                end()

    def collection(self, strategy: Strategy) -> Collection:
        return self.storage.collection(strategy.info.storage)

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Document | None:
        """Return the stored document of an object, without kind and apiVersion, or None."""
        entry = self.storage.collection((group, plural)).get(key_of(namespace, name))
        return decode(entry.raw) if entry is not None else None

    async def document(self, strategy: Strategy, entry: Entry) -> Document:
        """Return a private copy of an object in the strategy's version."""
        return (await self.documents(strategy, [entry]))[0]

    async def documents(self, strategy: Strategy, entries: list[Entry]) -> list[Document]:
        """Return private copies of objects in the strategy's version, in order; convert them in one batch."""
        found: list[Document] = [decode(entry.raw) for entry in entries]
        outdated = [index for index, entry in enumerate(entries) if entry.encoding_version != strategy.encoding_version]
        if outdated:
            converted = await strategy.from_storage(
                [(found[index], entries[index].encoding_version) for index in outdated]
            )
            for index, document in zip(outdated, converted, strict=True):
                found[index] = document
        kind = strategy.info.kind
        for document in found:
            document["kind"] = kind.kind
            document["apiVersion"] = kind.api_version
        return found
