"""Follow every kind that the server serves, by metadata only, as custom resources come and go.

Rules that hold here:

1. A kind is followed when it can be listed, watched and deleted, in the version that the server prefers. Events are
   not: nobody owns by them, and there are many.
2. A kind that is missing from discovery is followed on, unless its CRD is gone: a group that cannot be asked for a
   while must not look like a group whose objects are gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from konverge.cache import Cache, CacheOptions, Event, ReflectorOptions, Lister
from konverge.client import Client, Served
from konverge.errors import KonvergeError, NotSynced
from konverge.objects import Kind, Scope

__all__ = ["Following", "followed_kinds"]

_log = logging.getLogger("konverge_cluster")

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", Scope.CLUSTER
)
_SERVICES: Final = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", Scope.CLUSTER)
_NEEDED: Final = {"delete", "list", "watch"}
_SYNC_TIMEOUT: Final = 30.0
_ASK_AGAIN_AFTER: Final = 1.0


def followed_kinds(served: Iterable[Served]) -> list[Kind]:
    """Choose what to follow: each resource once, in the version that is named first."""
    chosen: dict[tuple[str, str], Kind] = {}
    for one in served:
        if one.kind.plural != "events" and set(one.verbs) >= _NEEDED:
            chosen.setdefault((one.kind.group, one.kind.plural), one.kind)
    return list(chosen.values())


class Following:
    """The caches of all kinds, kept in line with what the server serves.

    `told` gets each event with its kind; `dropped` gets a kind that is followed no more because its CRD is gone.
    `complete` is set while every kind has been listed (or could not be for half a minute).
    """

    def __init__(
        self,
        client: Client,
        told: Callable[[Kind, Event], None],
        dropped: Callable[[Kind], None],
        *,
        reflector_options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._told = told
        self._dropped = dropped
        self._cache = Cache(client.collection, reflector_options=reflector_options)
        self._views: dict[Kind, Lister[Any]] = {}
        self._definitions: set[str] = set()  # CRDs that are there, by name
        self._defined: set[str] = set()  # CRDs that were ever there
        self._changed = asyncio.Event()
        self.complete = asyncio.Event()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that are followed now."""
        return tuple(self._views)

    async def run(self) -> None:
        """Follow until this is cancelled."""
        async with self._cache:
            self._changed.set()
            while True:
                await self._changed.wait()
                self._changed.clear()
                try:
                    await self._keep_up()
                except KonvergeError as error:
                    _log.warning("The kinds of the server could not be asked for", extra={"error": str(error)})
                    await asyncio.sleep(_ASK_AGAIN_AFTER)
                    self._changed.set()

    async def _keep_up(self) -> None:
        await self._client.discovery.refresh()
        wanted = followed_kinds(await self._client.discovery.served())
        places = {(kind.group, kind.plural) for kind in wanted}
        for kind in [kind for kind in self._views if kind not in wanted]:
            place_taken = (kind.group, kind.plural) in places
            if place_taken or self._is_undefined(kind):
                self._leave(kind, gone=not place_taken)
        new = [kind for kind in wanted if kind not in self._views]
        if new:
            self.complete.clear()
            for kind in new:
                await self._join(kind)
            await self._wait()
        self.complete.set()

    async def _join(self, kind: Kind) -> None:
        view = self._cache.declare(kind, CacheOptions(metadata_only=True))
        self._views[kind] = view
        await view.subscribe(lambda event: self._take(kind, event))

    def _leave(self, kind: Kind, *, gone: bool) -> None:
        self._cache.remove_lister(self._views.pop(kind))
        if gone:
            self._dropped(kind)

    async def _wait(self) -> None:
        try:
            await self._cache.wait_for_sync(_SYNC_TIMEOUT)
        except NotSynced as error:
            _log.warning("Garbage collection goes on without some kinds: %s", error)

    def _take(self, kind: Kind, event: Event) -> None:
        if kind == _CRDS:
            self._note_definition(event)
        if kind in (_CRDS, _SERVICES):
            self._changed.set()
        self._told(kind, event)

    def _note_definition(self, event: Event) -> None:
        name = event.key.name
        self._defined.add(name)
        if event.new is None:
            self._definitions.discard(name)
        else:
            self._definitions.add(name)

    def _is_undefined(self, kind: Kind) -> bool:
        return kind.resource in self._defined and kind.resource not in self._definitions
