"""The garbage collector at work: it feeds the graph, asks about owners it has not seen, and carries verdicts out."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from konverge.cache import Event, ReflectorOptions
from konverge.client import Client
from konverge.errors import Conflict, KonvergeError, NotFound
from konverge.manager.background import background
from konverge.objects import Key, Kind, Unstructured
from konverge.queue import Backoff, WorkQueue
from konverge.reconcile import EventRecorder, Reference
from konverge_cluster.garbage.entries import named, owner_wire, thing_of, thing_of_wire
from konverge_cluster.garbage.following import Following
from konverge_cluster.garbage.graph import OwnerGraph, Owning, Thing
from konverge_cluster.garbage.verdicts import (
    Delete,
    DropFinalizer,
    DropOwners,
    Look,
    Standing,
    Verdict,
    verdict_on,
)

__all__ = ["GarbageCollector"]

_log = logging.getLogger("konverge_cluster")

_NAME: Final = "garbage-collector-controller"
_MANAGER: Final = "kube-controller-manager"
_WORKERS: Final = 8
_BACKOFF: Final = Backoff(first=0.05, factor=2.0, most=60.0)


class _Undecidable(KonvergeError):
    """A cluster-scoped thing names an owner of a namespaced kind: nobody can say which."""


class GarbageCollector:
    """Deletes what has lost its owners, and sees to the finalizers that say how dependents go.

    Promises: a thing is deleted only when the server said that none of its owners is there, and only in the state that
    this was decided on; nothing is decided on dependents before all kinds have been listed; trouble with one thing
    stays with it and is tried again.

    It belongs beside a server that has no kube-controller-manager. It runs while `running` does.
    """

    def __init__(self, client: Client, *, reflector_options: ReflectorOptions | None = None) -> None:
        client = client.without_warnings()  # kinds that are deprecated are followed because others use them
        self._client = client.using(field_manager=_MANAGER)
        self._graph = OwnerGraph()
        self._queue: WorkQueue[str] = WorkQueue("garbage", backoff=_BACKOFF)
        self._following = Following(client, self._told, self._dropped, reflector_options=reflector_options)
        self._recorder = EventRecorder(client, controller=_NAME)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that are followed now."""
        return self._following.kinds

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[GarbageCollector]:
        """Collect while the block runs."""
        workers = [self._work() for _ in range(_WORKERS)]
        async with background(self._following.run(), self._recorder.run(), *workers):
            yield self

    # What is seen

    def _told(self, kind: Kind, event: Event) -> None:
        if event.new is None:
            touched = self._graph.remove(event.entry.uid)
        else:
            replaced = event.old.uid if event.old is not None and event.old.uid != event.new.uid else ""
            touched = [*self._graph.remove(replaced), *self._graph.put(thing_of(kind, event.new))]
        self._look_at(touched)

    def _dropped(self, kind: Kind) -> None:
        for thing in self._graph.of_kind(kind):
            self._look_at(self._graph.remove(thing.uid))

    def _look_at(self, uids: list[str]) -> None:
        for uid in uids:
            self._queue.add(uid)

    # What is done

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            try:
                await self._following.complete.wait()
                await self._look(uid)
            except Conflict:
                self._queue.retry(uid)
            except KonvergeError as error:
                wait = self._queue.retry(uid)
                _log.info("Garbage collection tries again", extra={"uid": uid, "error": str(error), "wait": wait})
            else:
                self._queue.forget(uid)
            finally:
                self._queue.done(uid)

    async def _look(self, uid: str) -> None:
        thing = self._graph.get(uid)
        if thing is None:
            return
        try:
            standings = {} if thing.deleting else {one: await self._standing(thing, one) for one in thing.owners}
        except _Undecidable as error:
            _log.info("A thing is left alone: %s", error, extra={"kind": str(thing.kind), "key": str(thing.key)})
            return
        for verdict in verdict_on(thing, self._graph, standings):
            changed = await self._carry_out(verdict, thing)
            # What is done next is done to the state that this left behind.
            thing = changed or thing

    async def _standing(self, thing: Thing, owner: Owning) -> Standing:
        known = self._graph.get(owner.uid)
        if known is not None:
            if known.is_meant_by(owner, thing.key.namespace):
                return Standing.WAITING if known.is_waiting else Standing.SOLID
            if known.kind.namespaced and known.key.namespace != thing.key.namespace:
                self._tell_wrong_namespace(thing, owner)
        kind = await self._client.discovery.kind(owner.api_version, owner.kind)
        if kind.namespaced and not thing.kind.namespaced:
            raise _Undecidable(f"{owner.kind} {owner.name} is namespaced, and what it shall own is not")
        if self._graph.is_absent(owner.uid):
            return Standing.ABSENT
        return await self._asked_for(kind, Key(thing.key.namespace if kind.namespaced else "", owner.name), owner.uid)

    async def _asked_for(self, kind: Kind, key: Key, uid: str) -> Standing:
        try:
            found = thing_of_wire(kind, await self._client.get(kind, key))
        except NotFound:
            return Standing.ABSENT
        if found.uid != uid:
            return Standing.ABSENT
        return Standing.WAITING if found.is_waiting else Standing.SOLID

    def _tell_wrong_namespace(self, thing: Thing, owner: Owning) -> None:
        namespace = thing.key.namespace
        meant = f"[{owner.api_version}/{owner.kind}, namespace: {namespace}, name: {owner.name}, uid: {owner.uid}]"
        self._recorder.record(
            Reference.of(named(thing)),
            type="Warning",
            reason="OwnerRefInvalidNamespace",
            message=f'ownerRef {meant} does not exist in namespace "{namespace}"',
        )

    async def _carry_out(self, verdict: Verdict, about: Thing) -> Thing | None:
        """Carry a verdict out; give the thing that it is about as it is then, if it was changed.

        Raises: Conflict when a thing is no longer in the state that was decided on.
        """
        if isinstance(verdict, Look):
            self._queue.add(verdict.uid)
        elif isinstance(verdict, Delete):
            await self._client.delete(named(about), propagation=verdict.propagation, unchanged=True, missing_ok=True)
        elif isinstance(verdict, DropFinalizer):
            kept = [one for one in about.finalizers if one != verdict.finalizer]
            return await self._patch(about, {"finalizers": kept or None})
        elif isinstance(verdict, DropOwners):
            owners = [owner_wire(one) for one in verdict.thing.owners if one.uid not in verdict.uids]
            return await self._own_change(verdict.thing, about, {"ownerReferences": owners or None})
        else:
            loose = [owner_wire(_unblocked(one)) for one in verdict.thing.owners]
            return await self._own_change(verdict.thing, about, {"ownerReferences": loose})
        return None

    async def _own_change(self, thing: Thing, about: Thing, metadata: dict[str, Any]) -> Thing | None:
        changed = await self._patch(thing, metadata)
        return changed if thing.uid == about.uid else None

    async def _patch(self, thing: Thing, metadata: dict[str, Any]) -> Thing | None:
        sent = {"metadata": {**metadata, "uid": thing.uid, "resourceVersion": thing.version}}
        try:
            answer: Unstructured = await self._client.patch(thing.kind, thing.key, sent)
        except NotFound:
            return None
        return thing_of_wire(thing.kind, answer)


def _unblocked(owner: Owning) -> Owning:
    return replace(owner, blocks=False) if owner.blocks else owner
