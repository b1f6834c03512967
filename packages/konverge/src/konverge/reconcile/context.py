"""The context of one reconcile: reads, writes, events and a log, all for the object that is reconciled.

Reads come from the cache and include every write of this process that has returned. `ctx.client` reads from the server.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, TypeVar, overload

from konverge.cache import Cache
from konverge.client import Client, WriteEvent
from konverge.objects import (
    AnyObject,
    Condition,
    HasConditions,
    Key,
    Kind,
    LabelSelector,
    Resource,
    Unstructured,
    kind_of,
    set_condition,
)
from konverge.reconcile.applied import Applied, AppliedObjects
from konverge.reconcile.apply import Applier, LastApplied, Recreate
from konverge.reconcile.create_once import create_once
from konverge.reconcile.declared import DeclaredKinds
from konverge.reconcile.foreign_fields import ForeignField
from konverge.reconcile.observers import ActiveReconcile, Observers
from konverge.reconcile.prune import prune
from konverge.reconcile.recorder import EventRecorder, Reference
from konverge.reconcile.shared import find_shared
from konverge.reconcile.statuses import update_status
from konverge.telemetry import ContextLogger

__all__ = ["Context", "ReconcileDependencies", "record_in_cache"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)
V = TypeVar("V")

Objects: TypeAlias = list[V]


@dataclass(frozen=True, kw_only=True)
class ReconcileDependencies:
    """The dependencies that all reconciles of a controller share."""

    controller: str
    client: Client
    cache: Cache
    field_manager: str
    last_applied: LastApplied
    recorder: EventRecorder | None = None
    stopping: Callable[[], bool] = lambda: False  # whether the process stops
    observers: Observers = field(default_factory=Observers)
    record_write: Callable[[Key, WriteEvent], None] = lambda *_: None  # called for each write of a key's reconcile
    read_only: bool = False  # whether the controller may not write
    declared: DeclaredKinds = field(default_factory=DeclaredKinds)
    shared: tuple[object, ...] = ()  # what the functions of `Operator(shared=...)` have opened


class Context:
    """The operations of one reconcile.

    Promises:

    - a read includes every write of this process that has returned: `get`, `list`, `owned` and `find` alike;
    - `apply`, `update_status` and `prune` send nothing if nothing differs;
    - `create_once` never writes an object that exists;
    - `event` does not wait, and no error of the server reaches its caller;
    - all reads and writes are recorded in the journal of the key.
    """

    def __init__(
        self,
        obj: AnyObject,
        dependencies: ReconcileDependencies,
        reconcile: ActiveReconcile,
        *,
        last_error: str = "",
    ) -> None:
        self.key = obj.key
        self.attempt = reconcile.attempt
        self.last_error = last_error
        self.controller = dependencies.controller
        self.reconcile_id = reconcile.reconcile_id
        self.cache = dependencies.cache
        self._owner = obj
        self._dependencies = dependencies
        self._reconcile = reconcile
        self._applied = AppliedObjects()

    @cached_property
    def log(self) -> ContextLogger:
        """A logger whose records have the kind and key, the reconcile id and the attempt."""
        one = self._reconcile
        return ContextLogger(kind=one.kind.kind, key=str(self.key), reconcile_id=one.reconcile_id, attempt=one.attempt)

    @cached_property
    def client(self) -> Client:
        """The client of the manager; what it writes is recorded for this reconcile."""
        # Not a method: a client that refers to its context would leave each reconcile to the garbage collector.
        listener = partial(_record_write, self._dependencies, self._reconcile, self._applied)
        return self._dependencies.client.with_write_listener(listener)

    @cached_property
    def _applier(self) -> Applier:
        dependencies = self._dependencies
        return Applier(
            self.client,
            self.cache,
            field_manager=dependencies.field_manager,
            last_applied=dependencies.last_applied,
            declared=dependencies.declared,
        )

    def stopping(self) -> bool:
        """Report whether the process stops, for long reconciles that can end early."""
        return self._dependencies.stopping()

    @overload
    def shared(self, type_: type[V]) -> V: ...
    @overload
    def shared(self, type_: Callable[..., V]) -> V: ...
    def shared(self, type_: Any) -> Any:
        """Return the object of a type that the operator shares, such as an HTTP session.

        The type may also be a protocol that is `runtime_checkable`.

        Raises: ValueError when there is none.
        """
        return find_shared(self._dependencies.shared, type_)

    # Reading

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str | None = None) -> T | None: ...
    @overload
    async def get(self, kind: Kind, name: str | Key, *, namespace: str | None = None) -> Unstructured | None: ...
    async def get(self, kind: type[Any] | Kind, name: str | Key, *, namespace: str | None = None) -> Any:
        """Return one object from the cache, or None. The default namespace is that of the reconciled object."""
        key = name if isinstance(name, Key) else Key(self._namespace(kind, namespace), name)
        found = await self.cache.get(kind, key)
        self._record_read(kind_of(kind).kind, key, found.resource_version if found is not None else "")
        return found

    @overload
    async def list(self, kind: type[T], *, namespace: str | None = None, labels: str = "") -> Objects[T]: ...
    @overload
    async def list(self, kind: Kind, *, namespace: str | None = None, labels: str = "") -> Objects[Any]: ...
    async def list(self, kind: type[Any] | Kind, *, namespace: str | None = None, labels: str = "") -> Objects[Any]:
        """Return the objects that a selector matches.

        They are those of the reconciled object's namespace, or of all namespaces with `namespace=""`.
        """
        where = self._namespace(kind, namespace)
        found = await self.cache.list(kind, namespace=where, labels=labels)
        self._record_read(kind_of(kind).kind, Key(where, ""), f"{len(found)} objects")
        return found

    def owned(self, kind: type[T]) -> Objects[T]:
        """Return the children of this object: the objects of a kind in its namespace that name its uid as an owner.

        A namespaced owner owns nothing in other namespaces, so objects elsewhere that name its uid are ignored.

        Raises: ValueError when the kind is not declared with owns or watches.
        """
        found = self.cache.lister(kind).owned_by(self._owner.uid, namespace=self._owner.namespace)
        self._record_read(kind_of(kind).kind, Key(self.key.namespace, ""), f"{len(found)} owned")
        return found

    def find(self, kind: type[T], index: str, value: Hashable, *, namespace: str = "") -> Objects[T]:
        """Return the objects that an index has under a value.

        Raises: ValueError when no index of that name is declared with `.index(kind, name, path)`.
        """
        found = self.cache.lister(kind).find(index, value, namespace=namespace)
        self._record_read(kind_of(kind).kind, Key(namespace, ""), f"{len(found)} by {index}")
        return found

    def is_served(self, kind: type[Resource] | Kind) -> bool:
        """Report whether the server serves an optional kind: `.owns(PodMonitor, options=CacheOptions(optional=True))`.

        Raises: ValueError when the kind is not declared with owns or watches.
        """
        return all(informer.synced.is_set() for informer in self.cache.lister(kind_of(kind)).informers)

    # Writing

    async def apply(self, desired: R, *, force: bool = True, owned: bool = True, recreate: Recreate = False) -> R:
        """Server-side apply `desired` unless the live object already matches; return the live object.

        It becomes a child of this object unless `owned=False`. Fields that another manager owns are taken over unless
        `force=False`. `recreate` deletes and creates again an object that cannot be changed in place.

        `applied` returns what it did. A kind that the controller does not declare is logged once.

        Raises: ApplyConflict with `force=False` when another manager owns a field that would change.
        """
        owner = self._owner if owned else None
        return await self._applier.apply(desired, owner=owner, force=force, recreate=recreate, applied=self._applied)

    def applied(self, obj: AnyObject) -> Applied:
        """Return what the last `apply` of an object in this reconcile did: created, changed or unchanged.

        `obj` is the desired object, or the one that `apply` returned.

        Raises: ValueError when this reconcile has not applied it, or its apply failed.
        """
        keys = (obj.key, Key(self.key.namespace, obj.name)) if not obj.namespace else (obj.key,)
        found = next((one for key in keys if (one := self._applied.find(obj, key)) is not None), None)
        if found is None:
            raise ValueError(f"{obj.kind} {obj.key} was not applied in this reconcile: call ctx.apply first")
        return found

    async def create_once(self, obj: R, *, owned: bool = True) -> R:
        """Create an object unless it exists, and never write it again; return the stored object.

        For generated values such as passwords: whatever a cache, a restart or a second replica says, the first value
        stays. It becomes a child of this object unless `owned=False`.

        Raises: AlreadyOwned when another object is its controller; Retry when an old object of that name is about to be
        deleted.
        """
        owner = self._owner if owned else None
        return await create_once(self.client, self.cache, obj, owner=owner, applied=self._applied)

    async def hand_over(self, obj: AnyObject, path: str, *, to: str) -> None:
        """Hand a field of an applied object over to another manager, so that leaving it out does not reset it."""
        await self._applier.hand_over(obj, path, to=to, owner=self._owner)

    async def foreign_fields(self, obj: AnyObject) -> Objects[ForeignField]:
        """Return the fields of a child that other managers set, the status aside; none if it does not exist.

        It is read from the server, since the cache has only the managedFields of this manager.
        """
        return await self._applier.foreign_fields(obj, owner=self._owner)

    async def prune(self, *kinds: type[Resource] | Kind, labels: str = "") -> None:
        """Delete the children of these kinds that this reconcile did not apply: it must apply all that it needs.

        With `labels`, a selector, it keeps the children that do not match it.

        Raises: Conflict when a child could not be deleted; the key is then reconciled again.
        """
        await prune(
            self.client,
            self.cache,
            self._owner,
            self._applied,
            kinds=kinds,
            manager=self._dependencies.field_manager,
            labels=LabelSelector.parse(labels),
        )

    async def delete(
        self,
        obj: AnyObject,
        *,
        missing_ok: bool = True,
        propagation: Literal["", "Background", "Foreground", "Orphan"] = "",
    ) -> None:
        """Delete an object, if it is still the one that was read."""
        await self.client.delete(obj, missing_ok=missing_ok, propagation=propagation)

    async def update_status(self, obj: R) -> R:
        """Patch an edited status: only the fields that differ, and nothing if none does.

        Raises: ValueError when another field than the status was edited, since that edit would be lost; Conflict when
        the object has changed since it was read; the key is then reconciled again at once.
        """
        if self._dependencies.read_only:
            text = f"it may not write the status of {obj.kind} {obj.key}"
            raise ValueError(f"controller {self.controller} is read_only: {text}")
        return await update_status(self.client, obj, cache=self.cache)

    def condition(
        self, obj: HasConditions, type_: str, status: bool | Literal["Unknown"], *, reason: str, message: str = ""
    ) -> bool:
        """Set a condition in the status of an object, for its current generation; report whether it changed."""
        status_of: Any = obj.status
        conditions: list[Condition] | None = status_of.conditions
        if conditions is None:
            conditions = status_of.conditions = []
        generation = obj.metadata.generation
        return set_condition(conditions, type_, status, reason=reason, message=message, observed_generation=generation)

    def set_ready(
        self, obj: HasConditions, ready: bool | Literal["Unknown"], *, reason: str, message: str = ""
    ) -> bool:
        """Set the condition Ready of an object, and the observedGeneration of its status if it has that field.

        Report whether anything changed. `update_status` sends it.
        """
        changed = self.condition(obj, "Ready", ready, reason=reason, message=message)
        generation = obj.metadata.generation or 0
        status: Any = obj.status
        if "observed_generation" in status.__struct_fields__ and status.observed_generation != generation:
            status.observed_generation = generation
            return True
        return changed

    def event(
        self,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        action: str = "",
        regarding: AnyObject | None = None,
        reporter: str = "",
    ) -> None:
        """Record an event about this object, or about `regarding`. It is sent in the background, or dropped.

        `reporter` is the reporting controller; the default is this controller.

        Raises: ValueError when the reason is not one word (`ScaledUp`): that is a mistake in the code.
        """
        recorder = self._dependencies.recorder
        if recorder is not None:
            reference = Reference.of(regarding if regarding is not None else self._owner)
            type_ = "Warning" if warning else "Normal"
            controller = reporter or self.controller
            recorder.record(reference, type=type_, reason=reason, message=message, action=action, controller=controller)

    # Implementation

    def _namespace(self, kind: type[Any] | Kind, namespace: str | None) -> str:
        if namespace is not None:
            return namespace
        return self.key.namespace if kind_of(kind).namespaced else ""

    def _record_read(self, kind: str, key: Key, found: str = "") -> None:
        self._dependencies.observers.read(self._reconcile, kind, key, found)


def _record_write(
    dependencies: ReconcileDependencies, reconcile: ActiveReconcile, applied: AppliedObjects, write: WriteEvent
) -> None:
    """Record a successful write: readers see it from now on, and its event does not enqueue this key again."""
    applied.record_write(write)
    dependencies.observers.write(reconcile, write)
    dependencies.record_write(reconcile.key, write)
    record_in_cache(dependencies.cache, write, writer=(dependencies.controller, reconcile.key))


def record_in_cache(cache: Cache, write: WriteEvent, *, writer: object = None) -> None:
    """Record a write in the cache, so that the next read includes it."""
    if write.verb == "delete":
        cache.record_delete(write.kind, write.key, write.response, version=write.base_version, writer=writer)
        return
    cache.record_write(
        write.kind,
        write.response,
        document=write.document,
        created=write.created,
        base_version=write.base_version,
        writer=writer,
    )
