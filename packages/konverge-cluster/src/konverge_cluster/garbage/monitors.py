"""Metadata-only informers of every kind that the server serves. They follow the CRDs that are added and removed.

Rules that hold here:

1. A kind is monitored if it can be listed, watched and deleted, in the version that the server prefers. Events are
      not monitored: they own nothing, and there are many.
2. A kind that is missing from discovery stays monitored unless its CRD was deleted: a group that is unavailable for a
      while must not look like a group whose objects are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from konverge.cache import Cache, CacheOptions, Event, Lister, ReflectorOptions
from konverge.client import ApiResource, Client
from konverge.errors import KonvergeError, NotSynced
from konverge.objects import Kind, Scope

__all__ = ["Monitors", "kinds_to_monitor"]

_log = logging.getLogger("konverge_cluster")

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", Scope.CLUSTER
)
_SERVICES: Final = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", Scope.CLUSTER)
_REQUIRED_VERBS: Final = {"delete", "list", "watch"}
_SYNC_TIMEOUT: Final = 30.0
_RETRY_AFTER: Final = 1.0


def kinds_to_monitor(served: Iterable[ApiResource]) -> list[Kind]:
    """Return the kinds to monitor: each resource once, in the first version listed."""
    kinds: dict[tuple[str, str], Kind] = {}
    for one in served:
        if one.kind.plural != "events" and set(one.verbs) >= _REQUIRED_VERBS:
            kinds.setdefault((one.kind.group, one.kind.plural), one.kind)
    return list(kinds.values())


class Monitors:
    """The informers of all kinds, kept in line with what the server serves.

    `on_event` receives each event with its kind; `on_removed` each kind that is no longer monitored: its CRD is gone.
    `complete` is set while every kind has been listed (or could not be for half a minute).
    """

    def __init__(
        self,
        client: Client,
        on_event: Callable[[Kind, Event], None],
        on_removed: Callable[[Kind], None],
        *,
        reflector_options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._on_event = on_event
        self._on_removed = on_removed
        self._cache = Cache(client.collection, reflector_options=reflector_options)
        self._listers: dict[Kind, Lister[Any]] = {}
        self._definitions: set[str] = set()  # names of existing CRDs
        self._observed: set[str] = set()  # names of all CRDs that were ever observed
        self._changed = asyncio.Event()
        self.complete = asyncio.Event()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that are monitored now."""
        return tuple(self._listers)

    async def run(self) -> None:
        """Monitor until this is cancelled."""
        async with self._cache:
            self._changed.set()
            while True:
                await self._changed.wait()
                self._changed.clear()
                try:
                    await self._sync()
                except KonvergeError as error:
                    _log.warning("discovery failed", extra={"error": str(error)})
                    await asyncio.sleep(_RETRY_AFTER)
                    self._changed.set()

    async def _sync(self) -> None:
        await self._client.discovery.refresh()
        desired = kinds_to_monitor(await self._client.discovery.resources())
        resources = {(kind.group, kind.plural) for kind in desired}
        for kind in [kind for kind in self._listers if kind not in desired]:
            is_replaced = (kind.group, kind.plural) in resources
            if is_replaced or self._is_definition_deleted(kind):
                self._stop_monitor(kind, deleted=not is_replaced)
        new = [kind for kind in desired if kind not in self._listers]
        if new:
            self.complete.clear()
            for kind in new:
                await self._start_monitor(kind)
            await self._wait_for_sync()
        self.complete.set()

    async def _start_monitor(self, kind: Kind) -> None:
        lister = self._cache.declare(kind, CacheOptions(metadata_only=True))
        self._listers[kind] = lister
        await lister.subscribe(lambda event: self._handle(kind, event))

    def _stop_monitor(self, kind: Kind, *, deleted: bool) -> None:
        self._cache.remove_lister(self._listers.pop(kind))
        if deleted:
            self._on_removed(kind)

    async def _wait_for_sync(self) -> None:
        try:
            await self._cache.wait_for_sync(_SYNC_TIMEOUT)
        except NotSynced as error:
            _log.warning("cache sync timed out", extra={"error": str(error)})

    def _handle(self, kind: Kind, event: Event) -> None:
        if kind == _CRDS:
            self._record_definition(event)
        if kind in (_CRDS, _SERVICES):
            self._changed.set()
        self._on_event(kind, event)

    def _record_definition(self, event: Event) -> None:
        name = event.key.name
        self._observed.add(name)
        if event.new is None:
            self._definitions.discard(name)
        else:
            self._definitions.add(name)

    def _is_definition_deleted(self, kind: Kind) -> bool:
        return kind.resource in self._observed and kind.resource not in self._definitions
