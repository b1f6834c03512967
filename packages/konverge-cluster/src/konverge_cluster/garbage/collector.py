"""The garbage collector: updates the graph, looks up unobserved owners and executes actions."""

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
from konverge_cluster.garbage.actions import (
    Action,
    Delete,
    Enqueue,
    OwnerState,
    RemoveFinalizer,
    RemoveOwners,
    required_actions,
)
from konverge_cluster.garbage.graph import GraphNode, OwnerGraph, OwnerReference
from konverge_cluster.garbage.graph_nodes import node_from_entry, node_from_object, object_of, reference_to_dict
from konverge_cluster.garbage.monitors import Monitors

__all__ = ["GarbageCollector"]

_log = logging.getLogger("konverge_cluster")

_NAME: Final = "garbage-collector-controller"
_MANAGER: Final = "kube-controller-manager"
_WORKERS: Final = 8
_BACKOFF: Final = Backoff(base_delay=0.05, factor=2.0, max_delay=60.0)


class _InvalidOwner(KonvergeError):
    """A cluster-scoped object has an owner of a namespaced kind: its namespace is unknown."""


class GarbageCollector:
    """Deletes objects whose owners are absent, and handles the finalizers for orphaning and foreground deletion.

    Promises: an object is deleted only after the server confirmed that none of its owners exists, and only in the
    observed state; no decision about dependents is made before all kinds have been listed; a failure affects only one
    object and is retried.

    It is for a server without a kube-controller-manager. It runs while `running` does.
    """

    def __init__(self, client: Client, *, reflector_options: ReflectorOptions | None = None) -> None:
        client = client.without_warnings()  # deprecated kinds are monitored too; their warnings are noise
        self._client = client.using(field_manager=_MANAGER)
        self._graph = OwnerGraph()
        self._queue: WorkQueue[str] = WorkQueue("garbage", backoff=_BACKOFF)
        self._monitors = Monitors(client, self._on_event, self._on_kind_removed, reflector_options=reflector_options)
        self._recorder = EventRecorder(client, controller=_NAME)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that are monitored now."""
        return self._monitors.kinds

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[GarbageCollector]:
        """Collect garbage while the block runs."""
        workers = [self._work() for _ in range(_WORKERS)]
        async with background(self._monitors.run(), self._recorder.run(), *workers):
            yield self

    # Events

    def _on_event(self, kind: Kind, event: Event) -> None:
        if event.new is None:
            affected = self._graph.remove(event.entry.uid)
        else:
            replaced = event.old.uid if event.old is not None and event.old.uid != event.new.uid else ""
            affected = [*self._graph.remove(replaced), *self._graph.put(node_from_entry(kind, event.new))]
        self._enqueue(affected)

    def _on_kind_removed(self, kind: Kind) -> None:
        for node in self._graph.of_kind(kind):
            self._enqueue(self._graph.remove(node.uid))

    def _enqueue(self, uids: list[str]) -> None:
        for uid in uids:
            self._queue.add(uid)

    # Workers

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            try:
                await self._monitors.complete.wait()
                await self._attempt_to_delete(uid)
            except Conflict:
                self._queue.retry(uid)
            except KonvergeError as error:
                wait = self._queue.retry(uid)
                _log.info("garbage collection failed", extra={"uid": uid, "error": str(error), "wait": wait})
            else:
                self._queue.forget(uid)
            finally:
                self._queue.done(uid)

    async def _attempt_to_delete(self, uid: str) -> None:
        node = self._graph.get(uid)
        if node is None:
            return
        try:
            owner_states = (
                {} if node.being_deleted else {one: await self._owner_state(node, one) for one in node.owners}
            )
        except _InvalidOwner as error:
            fields = {"kind": str(node.kind), "key": str(node.key), "error": str(error)}
            _log.info("owner cannot be resolved", extra=fields)
            return
        for action in required_actions(node, self._graph, owner_states):
            changed = await self._execute(action, node)
            # The next action applies to the state after this one.
            node = changed or node

    async def _owner_state(self, node: GraphNode, owner: OwnerReference) -> OwnerState:
        observed = self._graph.get(owner.uid)
        if observed is not None:
            if observed.matches_reference(owner, node.key.namespace):
                return OwnerState.WAITING if observed.is_waiting_for_dependents else OwnerState.SOLID
            if observed.kind.namespaced and observed.key.namespace != node.key.namespace:
                self._report_wrong_namespace(node, owner)
        kind = await self._client.discovery.kind(owner.api_version, owner.kind)
        if kind.namespaced and not node.kind.namespaced:
            raise _InvalidOwner(f"{owner.kind} {owner.name} is namespaced and its dependent is not")
        if self._graph.is_absent(owner.uid):
            return OwnerState.ABSENT
        return await self._live_owner_state(
            kind, Key(node.key.namespace if kind.namespaced else "", owner.name), owner.uid
        )

    async def _live_owner_state(self, kind: Kind, key: Key, uid: str) -> OwnerState:
        try:
            live = node_from_object(kind, await self._client.get(kind, key))
        except NotFound:
            return OwnerState.ABSENT
        if live.uid != uid:
            return OwnerState.ABSENT
        return OwnerState.WAITING if live.is_waiting_for_dependents else OwnerState.SOLID

    def _report_wrong_namespace(self, node: GraphNode, owner: OwnerReference) -> None:
        namespace = node.key.namespace
        reference = f"[{owner.api_version}/{owner.kind}, namespace: {namespace}, name: {owner.name}, uid: {owner.uid}]"
        self._recorder.record(
            Reference.of(object_of(node)),
            type="Warning",
            reason="OwnerRefInvalidNamespace",
            message=f'ownerRef {reference} does not exist in namespace "{namespace}"',
        )

    async def _execute(self, action: Action, about: GraphNode) -> GraphNode | None:
        """Execute an action; return the new state of `about` if it changed.

        Raises: Conflict when a node is no longer in the observed state.
        """
        if isinstance(action, Enqueue):
            self._queue.add(action.uid)
        elif isinstance(action, Delete):
            await self._client.delete(object_of(about), propagation=action.propagation, unchanged=True, missing_ok=True)
        elif isinstance(action, RemoveFinalizer):
            finalizers = [one for one in about.finalizers if one != action.finalizer]
            return await self._patch(about, {"finalizers": finalizers or None})
        elif isinstance(action, RemoveOwners):
            owners = [reference_to_dict(one) for one in action.node.owners if one.uid not in action.uids]
            return await self._patch_owners(action.node, about, {"ownerReferences": owners or None})
        else:
            owners = [reference_to_dict(_unblocked(one)) for one in action.node.owners]
            return await self._patch_owners(action.node, about, {"ownerReferences": owners})
        return None

    async def _patch_owners(self, node: GraphNode, about: GraphNode, metadata: dict[str, Any]) -> GraphNode | None:
        changed = await self._patch(node, metadata)
        return changed if node.uid == about.uid else None

    async def _patch(self, node: GraphNode, metadata: dict[str, Any]) -> GraphNode | None:
        sent = {"metadata": {**metadata, "uid": node.uid, "resourceVersion": node.version}}
        try:
            response: Unstructured = await self._client.patch(node.kind, node.key, sent)
        except NotFound:
            return None
        return node_from_object(node.kind, response)


def _unblocked(owner: OwnerReference) -> OwnerReference:
    return replace(owner, block_owner_deletion=False) if owner.block_owner_deletion else owner
