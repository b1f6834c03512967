"""The context of one reconcile: reads, writes, events and a log that know which object they are about.

Reads come from the cache and see every write of this process that has returned. `ctx.client` asks the server itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, overload

from konverge.cache import Cache
from konverge.client import Client, Written
from konverge.errors import DecodeError
from konverge.objects import (
    AnyObject,
    Condition,
    Key,
    Kind,
    Model,
    Resource,
    Unstructured,
    decode,
    kind_of,
    set_condition,
)
from konverge.reconcile.apply import Applier, Memory, Recreate
from konverge.reconcile.hot_loops import HotLoopDetector
from konverge.reconcile.journal import Run
from konverge.reconcile.prune import Applied, prune
from konverge.reconcile.recorder import EventRecorder, Reference
from konverge.reconcile.statuses import update_status
from konverge.telemetry import ContextLogger

__all__ = ["Context", "Tools"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)

Objects: TypeAlias = list[T]


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a controller works with, shared by all of its reconciles."""

    controller: str
    client: Client
    cache: Cache
    field_manager: str
    memory: Memory
    recorder: EventRecorder | None = None
    observed: Callable[[Key, int], None] = lambda *_: None  # told which generation a status observes
    stopping: Callable[[], bool] = lambda: False  # whether the process stops
    restless: HotLoopDetector = field(default_factory=lambda: HotLoopDetector(""))  # who watches what is written


class Context:
    """What one reconcile may do.

    Promises:

    - a read sees every write of this process that has returned, in `get`, `list`, `owned` and `find` alike;
    - `apply`, `update_status` and `prune` send nothing when nothing is different;
    - `event` does not wait, and no trouble of the server reaches its caller;
    - all that is read and written here is kept in the journal of the key.
    """

    def __init__(self, obj: AnyObject, tools: Tools, run: Run, *, kind: Kind, attempt: int, last_error: str) -> None:
        self.key = obj.key
        self.attempt = attempt
        self.last_error = last_error
        self.controller = tools.controller
        self.reconcile_id = run.reconcile_id
        self.cache = tools.cache
        self.log = ContextLogger(kind=kind.kind, key=str(obj.key), reconcile_id=run.reconcile_id, attempt=attempt)
        self._owner = obj
        self._kind = kind
        self._tools = tools
        self._run = run
        self._applied = Applied()
        self.client = tools.client.telling(self._written)
        tools.restless.began(self.key, tools.cache)
        self._applier = Applier(self.client, tools.cache, field_manager=tools.field_manager, memory=tools.memory)

    def stopping(self) -> bool:
        """Tell whether the process stops: for reconciles that take long, and can end early."""
        return self._tools.stopping()

    # Reading

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str | None = None) -> T | None: ...
    @overload
    async def get(self, kind: Kind, name: str | Key, *, namespace: str | None = None) -> Unstructured | None: ...
    async def get(self, kind: type[Any] | Kind, name: str | Key, *, namespace: str | None = None) -> Any:
        """Read one object; None when it is not there. Without a namespace it is looked for in this object's own."""
        key = name if isinstance(name, Key) else Key(self._namespace(kind, namespace), name)
        found = await self.cache.get(kind, key)
        self._run.read(kind_of(kind).kind, key, found.resource_version if found is not None else "")
        return found

    @overload
    async def list(self, kind: type[T], *, namespace: str | None = None, labels: str = "") -> Objects[T]: ...
    @overload
    async def list(self, kind: Kind, *, namespace: str | None = None, labels: str = "") -> Objects[Any]: ...
    async def list(self, kind: type[Any] | Kind, *, namespace: str | None = None, labels: str = "") -> Objects[Any]:
        """Read the objects that a selector picks, of this object's namespace, or of all with `namespace=""`."""
        where = self._namespace(kind, namespace)
        found = await self.cache.list(kind, namespace=where, labels=labels)
        self._run.read(kind_of(kind).kind, Key(where, ""), f"{len(found)} objects")
        return found

    def owned(self, kind: type[T]) -> Objects[T]:
        """Read the children of this object: those of a kind that name its uid as an owner, in its own namespace.

        An owner in a namespace owns nothing outside of it: who writes its uid elsewhere has no say here.

        Raises: ValueError when the kind is not declared with owns or watches.
        """
        found = self.cache.view(kind).owned_by(self._owner.uid, namespace=self._owner.namespace)
        self._run.read(kind_of(kind).kind, Key(self.key.namespace, ""), f"{len(found)} owned")
        return found

    def find(self, kind: type[T], index: str, value: Hashable, *, namespace: str = "") -> Objects[T]:
        """Read the objects that a declared index has under a value."""
        found = self.cache.view(kind).find(index, value, namespace=namespace)
        self._run.read(kind_of(kind).kind, Key(namespace, ""), f"{len(found)} by {index}")
        return found

    # Writing

    async def apply(self, desired: R, *, force: bool = True, owned: bool = True, recreate: Recreate = False) -> R:
        """Make an object so, by server-side apply, if it is not so already; give it as it is.

        It becomes a child of this object unless `owned=False`. What another manager owns is taken, unless
        `force=False`. `recreate` deletes and creates anew what cannot be changed in place.

        Raises: ApplyConflict with `force=False` when another manager owns a field that would change.
        """
        owner = self._owner if owned else None
        return await self._applier.apply(desired, owner=owner, force=force, recreate=recreate, applied=self._applied)

    async def hand_over(self, obj: AnyObject, path: str, *, to: str) -> None:
        """Give a field of an applied object to another manager, so that leaving it out does not reset it."""
        await self._applier.hand_over(obj, path, to=to, owner=self._owner)

    async def prune(self, *kinds: type[Resource] | Kind) -> None:
        """Delete the children of these kinds that this run did not apply: what it applied is the complete set."""
        await prune(self.client, self.cache, self._owner, self._applied, kinds=kinds, manager=self._tools.field_manager)

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
        """Write an edited status: only what is different, and nothing when nothing is.

        Raises: Conflict when the object changed meanwhile; the key is then reconciled anew, at once.
        """
        return await update_status(self.client, obj, cache=self.cache)

    def condition(
        self, obj: Any, type_: str, status: bool | Literal["Unknown"], *, reason: str, message: str = ""
    ) -> bool:
        """Set a condition in the status of an object, for its present generation; tell whether anything changed."""
        conditions: list[Condition] | None = obj.status.conditions
        if conditions is None:
            conditions = obj.status.conditions = []
        generation = obj.metadata.generation
        return set_condition(conditions, type_, status, reason=reason, message=message, observed_generation=generation)

    def event(
        self,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        action: str = "",
        about: AnyObject | None = None,
        reporter: str = "",
    ) -> None:
        """Record an event about this object, or another one. It is sent in the background, or dropped.

        `reporter` signs it in another name than this controller's.

        Raises: ValueError when the reason is not one word (`ScaledUp`): that is a mistake in the code.
        """
        recorder = self._tools.recorder
        if recorder is not None:
            subject = Reference.of(about if about is not None else self._owner)
            word = "Warning" if warning else "Normal"
            signed = reporter or self.controller
            recorder.record(subject, type=word, reason=reason, message=message, action=action, controller=signed)

    # How it is done

    def _namespace(self, kind: type[Any] | Kind, namespace: str | None) -> str:
        if namespace is not None:
            return namespace
        return self.key.namespace if kind_of(kind).namespaced else ""

    def _written(self, written: Written) -> None:
        """Take a write that succeeded: readers see it from here on, and its event will not wake this key again."""
        writer = (self.controller, self.key)
        cache, kind = self._tools.cache, written.kind
        version, ours = "", False
        self._tools.restless.wrote(written, by=self._owner, kind=self._kind, cache=cache)
        if written.verb == "delete":
            cache.note_delete(kind, written.key, written.answer, version=written.base_version, writer=writer)
        else:
            version = decode(_Versioned, written.answer).metadata.resource_version
            ours = written.created or written.base_version not in ("", version)
            cache.note_write(
                kind,
                written.answer,
                created=written.created,
                base_version=written.base_version,
                writer=writer,
            )
            if written.subresource and written.key == self.key and kind == self._kind:
                self._tools.observed(self.key, _observed_generation(written.answer))
        self._run.wrote(f"{written.verb} {written.subresource}".strip(), kind.kind, written.key, version, ours=ours)


class _Metadata(Model):
    resource_version: str = ""


class _Status(Model):
    observed_generation: int | None = None


class _Versioned(Model):
    """Any object, for its version."""

    metadata: _Metadata


class _Observing(Model):
    """An object, for what its status observes."""

    status: _Status | None = None


def _observed_generation(answer: bytes) -> int:
    """Give the generation that a status observes; 0 when it says none, or something else under that name."""
    try:
        status = decode(_Observing, answer).status
    except DecodeError:
        return 0
    return (status.observed_generation or 0) if status is not None else 0
