"""Apply: make an object as it is wanted, by one server-side apply, or by nothing at all when it is so already.

Rules that every change to this file keeps:

1. An object *is so* if (a) what is wanted is what was applied last, and the fields that we own hold what that apply
   gave; or (b) the fields that we own are exactly those that are wanted, and hold just what is wanted.
2. (a) bears with a server that stores `1000m` as `1`; (b) needs no memory, so a restart costs no write.
3. Fields of others, status and versions are not looked at: they cannot cause a write.
4. What is compared is what readers see, own writes included. A kind that is not kept whole, or not with our
   managedFields, is read from the server first: a read instead of a write.
5. A dry run is not remembered.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from konverge.cache import Cache, Entry
from konverge.client import Client
from konverge.client.targets import Target, key_in, target_of_object
from konverge.errors import ApplyConflict, Invalid, NotFound, OwnedByAnother
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured, encode, whole
from konverge.reconcile.handover import part_to_hand_over
from konverge.reconcile.memo import Memo, Memory, hash_of, hash_of_rest
from konverge.reconcile.owned_fields import fields_of, look, wants_nothing, without_emptied, without_identity
from konverge.reconcile.owner_references import made_ready, other_controller
from konverge.reconcile.prune import Applied
from konverge.reconcile.recreation import clear_the_way

__all__ = ["Applier", "Memory", "Recreate"]

R = TypeVar("R", bound=AnyObject)

Recreate: TypeAlias = bool | Literal["Background", "Foreground", "Orphan"]
"""Whether an object that cannot be changed is made anew, and what becomes of its own children; True is "Background"."""

_plain = msgspec.json.Decoder().decode
_UNWATCHED = 10_000
"""So many objects are remembered whose going nobody would notice."""


class _Wanted(Generic[R]):
    """What is wanted of one object, ready to be sent, and its hash."""

    __slots__ = ("hash", "key", "kind", "obj", "target", "wire")

    def __init__(self, obj: R, target: Target[R]) -> None:
        self.obj = obj
        self.target = target
        self.kind: Kind = target.kind
        self.key = obj.key
        self.wire = whole(obj)
        self.hash = hash_of(self.wire)


class Applier:
    """Applies objects as one field manager.

    Promises:

    - after `apply` returned, everything that was wanted is so (as far as the server stores what it is given), and what
      was wanted the last time and is not now is gone, unless another manager owns it too;
    - a second `apply` of the same sends nothing, whatever others did to fields that are not ours;
    - after a restart (an empty `memory`) it sends at most one request, and only where the server stores another value
      than it was given.
    """

    def __init__(self, client: Client, cache: Cache, *, field_manager: str, memory: Memory | None = None) -> None:
        self._client = client.using(field_manager=field_manager)
        self._cache = cache
        self._manager = field_manager
        self._memory = Memory() if memory is None else memory

    async def apply(
        self,
        desired: R,
        *,
        owner: AnyObject | None = None,
        force: bool = True,
        recreate: Recreate = False,
        applied: Applied | None = None,
    ) -> R:
        """Make an object so, if it is not; give it as it is now.

        It becomes a child of `owner`, in whose namespace it is unless it says another. `recreate` deletes and makes
        anew an object that cannot be changed as wanted. `applied` is told what was wanted, whatever comes of it.

        Raises: ApplyConflict with `force=False` when another manager owns a field that would change; ValueError when
        the owner cannot own it; OwnedByAnother when another
        object is its controller; AlreadyExists when it is to be made anew and the old one is not gone yet.
        """
        target: Target[R] = await target_of_object(desired, self._client.discovery)
        ready = made_ready(desired, target.kind, owner=owner, namespace=self._client.settings.namespace)
        wanted = _Wanted(ready, target)
        if applied is not None:
            applied.add(ready)
        live = await self._live(target, wanted.key)
        if live is None:
            self._memory.forget(wanted.kind, wanted.key)
        elif owner is not None and (holder := other_controller(live.owner_references(), owner)) is not None:
            raise OwnedByAnother(
                f"apply {wanted.kind.kind} {wanted.key}: it belongs to {holder.kind} {holder.name}, so {owner.kind}"
                f" {owner.name} cannot have it (give its children names of their own)"
            )
        elif self._is_so(wanted, live):
            return live.read(target.type)
        made = await self._send(wanted, live, force=force, recreate=recreate)
        if not self._client.settings.dry_run:
            self._note(wanted, made)
        return made

    async def hand_over(self, obj: AnyObject, path: str, *, to: str, owner: AnyObject | None = None) -> None:
        """Give a field of an applied object to another manager as well: from now on leaving it out does not reset it.

        `path` is a wire path, `.spec.replicas` or `.spec.template.spec.containers[name="app"].resources`. Nothing is
        sent when the field is not ours, so it may be said in every run. To take the field back, apply it. Without a
        namespace the object is looked for in that of its owner.

        Raises: Conflict when the object is not what it was any more.
        """
        target: Target[Any] = await target_of_object(obj, self._client.discovery)
        namespace = obj.namespace or (owner.namespace if owner is not None and target.kind.namespaced else "")
        live = await self._live(
            target, key_in(target.kind, obj.name, namespace or None, self._client.settings.namespace)
        )
        part = None if live is None else part_to_hand_over(_plain(live.json), path, manager=self._manager)
        if part is None:
            return
        try:
            await self._client.using(field_manager=to).apply(part)
        except ApplyConflict as conflict:
            # With a third manager: it has set the field meanwhile, so there is nothing of ours to give any more.
            if any(one.manager == self._manager for one in conflict.conflicts):
                raise

    async def _live(self, target: Target[Any], key: Key) -> Entry | None:
        """Give the object as readers see it [4]."""
        view = self._cache.whole_view(target.kind, key.namespace)
        if view is not None and view.options.manager == self._manager:
            return view.entry(key)
        try:
            return _entry_of(await self._client.get(_readable(target), key))
        except NotFound:
            return None

    def _is_so(self, wanted: _Wanted[Any], live: Entry) -> bool:
        memo = self._memory.recall(wanted.kind, wanted.key, uid=live.uid)
        same = memo is not None and memo.desired == wanted.hash
        if memo is not None and same and memo.version == str(live.version):
            return True
        text = live.json
        rest = hash_of_rest(text)
        if memo is not None and same and memo.rest == rest:
            return True
        document = _plain(text)
        owned = fields_of(document, self._manager) or {}
        seen = look(owned, document, wanted.wire)
        values = hash_of(seen.values)
        told = bool(owned) or wants_nothing(wanted.wire)
        is_so = seen.agrees or (told and memo is not None and same and memo.values == values)
        if is_so:
            self._remember(wanted, Memo(live.uid, wanted.hash, values, str(live.version), rest))
        return is_so

    async def _send(self, wanted: _Wanted[R], live: Entry | None, *, force: bool, recreate: Recreate) -> R:
        try:
            if live is not None:
                await self._empty(wanted, live, force)
            return await self._client.apply(wanted.obj, force=force)
        except Invalid as refusal:
            if not recreate:
                raise
            propagation = "Background" if recreate is True else recreate
            await clear_the_way(self._client, wanted.obj, refusal, reading=_readable(wanted.target), how=propagation)
        return await self._client.apply(wanted.obj, force=force)

    async def _empty(self, wanted: _Wanted[Any], live: Entry, force: bool) -> None:
        """Take out what is ours in maps and lists that are wanted empty; only then they can be."""
        owned = fields_of(_plain(live.json), self._manager) or {}
        less = without_emptied(owned, without_identity(wanted.wire)) or {}
        if less != without_identity(wanted.wire):
            who = {"name": wanted.key.name, **({"namespace": wanted.key.namespace} if wanted.key.namespace else {})}
            title = {"apiVersion": wanted.kind.api_version, "kind": wanted.kind.kind}
            await self._client.apply(
                Unstructured({**less, **title, "metadata": {**less.get("metadata", {}), **who}}), force=force
            )

    def _note(self, wanted: _Wanted[Any], made: AnyObject) -> None:
        document = _plain(_bytes_of(made))
        owned = fields_of(document, self._manager) or {}
        if not owned and not wants_nothing(wanted.wire):
            self._memory.forget(wanted.kind, wanted.key)  # the server does not say what is ours: nothing to rely on
            return
        seen = look(owned, document, wanted.wire)
        self._remember(wanted, Memo(made.uid, wanted.hash, hash_of(seen.values), made.resource_version))

    def _remember(self, wanted: _Wanted[Any], memo: Memo) -> None:
        self._memory.remember(wanted.kind, wanted.key, memo, is_gone=self._is_gone)

    def _is_gone(self, kind: Kind, key: Key) -> bool:
        view = self._cache.whole_view(kind, key.namespace)
        if view is None:
            return len(self._memory) > _UNWATCHED
        return view.synced and view.entry(key) is None


def _readable(target: Target[Any]) -> Any:
    return target.type if issubclass(target.type, Resource) else target.kind


def _bytes_of(obj: AnyObject) -> bytes:
    source = obj.source if isinstance(obj, Resource) else None
    return encode(obj) if source is None else source


def _entry_of(obj: AnyObject) -> Entry:
    return Entry(obj.key, obj.uid, obj.resource_version, 0, (), (), False, _bytes_of(obj))
