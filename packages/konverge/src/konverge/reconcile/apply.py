"""Apply: bring an object to its desired state with one server-side apply, or with no request if it already matches.

Rules that every change to this file keeps:

1. An object *matches* if (a) the desired state is the one that was applied last, and the fields that our manager owns
   have the values that this apply resulted in; or (b) the owned fields are exactly the desired ones, with the desired
   values.
2. (a) allows for a server that stores `1000m` as `1`; (b) needs no stored state, so a restart causes no write.
3. Fields of other managers, status and versions are not compared: they cannot cause a write.
4. The comparison uses the object that readers see, pending writes included. If the cache does not hold the complete
   object, or not our managedFields, it is read from the server first: a read instead of a write.
5. The result of a dry run is not stored.
6. A write carries the uid and version of the object that was compared, or creates only if there was none. If the server
   refuses that, the owner and the object are read from the server, and the decision is made again (`stale`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from konverge.cache import Cache, Entry, Lister
from konverge.client import Client
from konverge.client.targets import Target, resolve_key, resolve_object_target
from konverge.client.writes import Written
from konverge.errors import AlreadyOwned, ApiError, ApplyConflict, Conflict, Forbidden, Invalid, NotFound
from konverge.objects import AnyObject, Key, Kind, OwnerReference, Resource, Unstructured, encode, full_object_bytes
from konverge.reconcile.applied import AppliedObjects
from konverge.reconcile.declared import DeclaredKinds
from konverge.reconcile.foreign_fields import ForeignField, foreign_fields
from konverge.reconcile.hand_over import part_to_hand_over
from konverge.reconcile.last_applied import AppliedState, LastApplied, hash_bytes, hash_json, hash_without_status
from konverge.reconcile.owned_fields import (
    Comparison,
    compare,
    fields_of,
    sets_no_fields,
    without_empty_collections,
    without_identity,
)
from konverge.reconcile.owner_references import (
    has_owner_of_same_name,
    other_controller,
    references_of,
    with_namespace_and_owner,
)
from konverge.reconcile.recreate import delete_for_recreate
from konverge.reconcile.stale import CREATE_ONLY, Precondition, check_owner, is_stale

__all__ = ["Applier", "LastApplied", "Recreate"]

R = TypeVar("R", bound=AnyObject)

Recreate: TypeAlias = bool | Literal["Background", "Foreground", "Orphan"]
"""Whether an object that cannot be changed is recreated, and how its children are deleted; True is "Background"."""

_decode = msgspec.json.Decoder().decode
_MAX_KEPT_BYTES = 16 << 10
_SECRET = Kind("", "v1", "Secret", "secrets")
_MAX_UNCACHED = 10_000
"""The number of states from which on states of uncached objects are dropped: their deletion is not observed."""


class _Desired(Generic[R]):
    """The desired state of one object, ready to be sent, and its hash."""

    __slots__ = ("_data", "_document", "hash", "key", "kind", "obj", "target")

    def __init__(self, obj: R, target: Target[R]) -> None:
        self.obj = obj
        self.target = target
        self.kind: Kind = target.kind
        self.key = obj.key
        self._data = full_object_bytes(obj)
        self._document: dict[str, Any] | None = None
        self.hash = hash_bytes(self._data)

    @property
    def document(self) -> dict[str, Any]:
        """The desired state as JSON values; only a comparison of fields needs them."""
        document = self._document
        if document is None:
            document = self._document = _decode(self._data)
        return document


class Applier:
    """Apply objects as one field manager.

    Promises:

    - after `apply` returned, every desired field has its value (as far as the server stores it unchanged), and fields
      that were applied the last time and are no longer desired are removed, unless another manager owns them too;
    - a second `apply` of the same object sends nothing, whatever others did to fields that our manager does not own;
    - after a restart (with an empty `last_applied`) it sends at most one request, and only where the server stores a
      value other than the one it received.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        field_manager: str,
        last_applied: LastApplied | None = None,
        declared: DeclaredKinds | None = None,
    ) -> None:
        self._reader = client
        self._cache = cache
        self._manager = field_manager
        self._last_applied = LastApplied() if last_applied is None else last_applied
        self._declared = declared or DeclaredKinds()

    @cached_property
    def _client(self) -> Client:
        """The client with the field manager; most reconciles apply nothing that differs, and need none."""
        return self._reader.using(field_manager=self._manager)

    async def apply(
        self,
        desired: R,
        *,
        owner: AnyObject | None = None,
        force: bool = True,
        recreate: Recreate = False,
        applied: AppliedObjects | None = None,
    ) -> R:
        """Server-side apply `desired` unless the live object already matches; return the live object.

        It becomes a child of `owner`, and is in the owner's namespace unless it has another. `recreate` deletes and
        creates again an object that cannot be changed. `applied` gets the desired object, whether the apply succeeds or
        not, and what the apply did.

        Raises: ApplyConflict with `force=False` when another manager owns a field that would change; ValueError when
        the owner cannot own it; AlreadyOwned when another object is its controller; AlreadyExists when it is to be
        recreated and the old one is not gone yet; Conflict when the cache is stale and the owner is gone.
        """
        target: Target[R] = await resolve_object_target(desired, self._reader.discovery)
        self._declared.check(target.kind, owned=owner is not None)
        namespace = self._reader.options.namespace
        ready = with_namespace_and_owner(desired, target.kind, owner=owner, namespace=namespace)
        prepared = _Desired(ready, target)
        applied = AppliedObjects() if applied is None else applied
        identity = applied.add(ready)
        live = await self._live(target, prepared.key)
        try:
            sent = await self._write(prepared, live, Precondition.of(live), owner=owner, force=force, recreate=recreate)
        except ApiError as error:
            if not is_stale(error):
                raise
            live = await self._read_live(prepared, owner, error)
            # The owner is alive, so a change of the object in between does no harm.
            precondition = CREATE_ONLY if live is None else Precondition(live.uid)
            sent = await self._write(prepared, live, precondition, owner=owner, force=force, recreate=recreate)
        if sent is None:
            assert live is not None
            applied.finish(identity, None, None)
            return live.read(target.type)
        applied.finish(identity, None if live is None else live.json, sent.document)
        if not self._reader.options.dry_run:
            self._record_result(prepared, sent.obj, sent.document)
        return sent.obj

    async def hand_over(self, obj: AnyObject, path: str, *, to: str, owner: AnyObject | None = None) -> None:
        """Make another manager a co-owner of a field of an applied object: leaving it out then does not reset it.

        `path` is a wire path, `.spec.replicas` or `.spec.template.spec.containers[name="app"].resources`. Nothing is
        sent if our manager does not own the field, so this may be called in every reconcile. To take the field back,
        apply it. The default namespace is that of the owner.

        Raises: Conflict when the object has changed since it was read.
        """
        target, key = await self._resolve(obj, owner)
        live = await self._live(target, key)
        part = None if live is None else part_to_hand_over(_decode(live.json), path, manager=self._manager)
        if part is None:
            return
        try:
            await self._client.using(field_manager=to).apply(part)
        except ApplyConflict as conflict:
            # In conflict with a third manager: it has set the field since, so ours no longer owns it.
            if any(one.manager == self._manager for one in conflict.conflicts):
                raise

    async def foreign_fields(self, obj: AnyObject, *, owner: AnyObject | None = None) -> list[ForeignField]:
        """Return the fields of an object on the server that other managers set; none if it does not exist.

        The default namespace is that of the owner.
        """
        target, key = await self._resolve(obj, owner)
        try:
            live = await self._client.get(target.kind, key)
        except NotFound:
            return []
        return foreign_fields(live, self._manager)

    async def _resolve(self, obj: AnyObject, owner: AnyObject | None) -> tuple[Target[Any], Key]:
        target: Target[Any] = await resolve_object_target(obj, self._client.discovery)
        namespace = obj.namespace or (owner.namespace if owner is not None and target.kind.namespaced else "")
        return target, resolve_key(target.kind, obj.name, namespace or None, self._client.options.namespace)

    async def _live(self, target: Target[Any], key: Key) -> Entry | None:
        """Return the object that readers see [4]."""
        lister = self._lister(target.kind, key)
        if lister is not None:
            return lister.entry(key)
        try:
            return _entry_of(await self._client.get(_readable(target), key))
        except NotFound:
            return None

    def _lister(self, kind: Kind, key: Key) -> Lister[Any] | None:
        """Return the lister that has the complete object and our managedFields, None if the cache has none."""
        lister = self._cache.complete_lister(kind, key.namespace)
        return lister if lister is not None and lister.options.manager == self._manager else None

    async def _read_live(self, desired: _Desired[Any], owner: AnyObject | None, error: ApiError) -> Entry | None:
        """Read the object and its owner from the server, after it refused a write because of a stale cache [6]."""
        if owner is not None:
            await check_owner(self._client, self._cache, owner, error)
        try:
            live = _entry_of(await self._client.get(_readable(desired.target), desired.key))
        except NotFound:
            return None
        except Forbidden:
            raise error from None
        self._cache.record_live_version(desired.kind, desired.key, str(live.version))
        return live

    async def _write(
        self,
        desired: _Desired[R],
        live: Entry | None,
        precondition: Precondition,
        *,
        owner: AnyObject | None,
        force: bool,
        recreate: Recreate,
    ) -> Written[R] | None:
        """Send the apply, unless the object matches; return the response."""
        references = _other_owners(live, owner)
        if live is None:
            self._last_applied.forget(desired.kind, desired.key)
        elif owner is not None and (controller := other_controller(references, owner)) is not None:
            raise AlreadyOwned(
                f"apply {desired.kind.kind} {desired.key}: its controller is {controller.kind} {controller.name}, so"
                f" {owner.kind} {owner.name} cannot own it (use other names for its children)"
            )
        elif owner is not None and has_owner_of_same_name(references, owner):
            # Of two owners with one name the newer may be the other one: the caches of two kinds are not equally old.
            error = Conflict("", verb="apply", kind=desired.kind.kind, key=str(desired.key))
            await check_owner(self._client, self._cache, owner, error)
        elif self._matches(desired, live):
            return None
        return await self._send(desired, live, precondition, force=force, recreate=recreate)

    def _matches(self, desired: _Desired[Any], live: Entry) -> bool:
        last = self._last_applied.get(desired.kind, desired.key, uid=live.uid)
        if last is not None and last.desired != desired.hash:
            last = None
        version = str(live.version)
        if last is not None and last.version == version:
            return True
        text = live.json
        content = hash_without_status(text)
        if last is not None and _content_of(last) == content:
            entry = None if last.entry is None else live  # it has the same values, and the cache has it too
            self._store(desired, replace(last, version=version, content=content, entry=entry))
            return True
        document = _decode(text)
        owned = fields_of(document, self._manager) or {}
        comparison = compare(owned, document, desired.document)
        values = _values_hash(comparison)
        comparable = bool(owned) or sets_no_fields(desired.document)
        matches = comparison.matches or (comparable and last is not None and self._values_of(last, desired) == values)
        if matches:
            self._store(desired, AppliedState(live.uid, desired.hash, version, values, content))
        return matches

    def _values_of(self, last: AppliedState, desired: _Desired[Any]) -> bytes:
        """Return the hash of the values that the last apply of the same desired state resulted in."""
        return last.values if last.entry is None else self._hash_values(_decode(last.entry.json), desired)

    def _hash_values(self, document: dict[str, Any], desired: _Desired[Any]) -> bytes:
        return _values_hash(compare(fields_of(document, self._manager) or {}, document, desired.document))

    async def _send(
        self, desired: _Desired[R], live: Entry | None, precondition: Precondition, *, force: bool, recreate: Recreate
    ) -> Written[R]:
        try:
            if live is not None:
                precondition = await self._empty_collections(desired, live, precondition, force)
            return await self._client.send_apply(precondition.added_to(desired.obj), force=force)
        except Invalid as error:
            if not recreate or live is None or is_stale(error):
                raise
            propagation = "Background" if recreate is True else recreate
            await delete_for_recreate(
                self._client,
                desired.obj,
                error,
                kind=_readable(desired.target),
                uid=live.uid,
                propagation=propagation,
            )
        return await self._client.send_apply(CREATE_ONLY.added_to(desired.obj), force=force)

    async def _empty_collections(
        self, desired: _Desired[Any], live: Entry, precondition: Precondition, force: bool
    ) -> Precondition:
        """Remove our items from maps and lists that should be empty, as a separate apply; only then they can be.

        Return the precondition of the next apply.
        """
        owned = fields_of(_decode(live.json), self._manager) or {}
        fields = without_identity(desired.document)
        rest = without_empty_collections(owned, fields) or {}
        if rest == fields:
            return precondition
        key = desired.key
        identity = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
        kind = {"apiVersion": desired.kind.api_version, "kind": desired.kind.kind}
        first = Unstructured({**rest, **kind, "metadata": {**rest.get("metadata", {}), **identity}})
        result = await self._client.apply(precondition.added_to(first), force=force)
        dry_run = self._client.options.dry_run
        return (
            precondition if dry_run or not precondition.version else Precondition(result.uid, result.resource_version)
        )

    def _record_result(self, desired: _Desired[Any], result: AnyObject, document: dict[str, Any]) -> None:
        if not fields_of(document, self._manager) and not sets_no_fields(desired.document):
            self._last_applied.forget(desired.kind, desired.key)  # the server does not report what our manager owns
            return
        lister = self._lister(desired.kind, desired.key)
        entry = None if lister is None else lister.entry(desired.key)
        # An entry may outlive its object in the state.
        small = entry is not None and len(entry.data) <= _MAX_KEPT_BYTES and desired.kind != _SECRET
        if entry is not None and small and str(entry.version) == result.resource_version:
            state = AppliedState(result.uid, desired.hash, result.resource_version, entry=entry)
        else:
            values = self._hash_values(document, desired)
            state = AppliedState(result.uid, desired.hash, result.resource_version, values)
        self._store(desired, state)

    def _store(self, desired: _Desired[Any], state: AppliedState) -> None:
        self._last_applied.set(desired.kind, desired.key, state, is_gone=self._is_gone)

    def _is_gone(self, kind: Kind, key: Key) -> bool:
        lister = self._cache.complete_lister(kind, key.namespace)
        if lister is None:
            return len(self._last_applied) > _MAX_UNCACHED
        return lister.synced and lister.entry(key) is None


def _values_hash(comparison: Comparison) -> bytes:
    """Return a hash of the owned values, b"" if they are the desired ones: then the desired state tells them."""
    return b"" if comparison.matches else hash_json(comparison.values)


def _content_of(state: AppliedState) -> bytes:
    return state.content if state.entry is None or state.content else hash_without_status(state.entry.json)


def _other_owners(live: Entry | None, owner: AnyObject | None) -> list[OwnerReference]:
    """Return the owner references of a live object; none if its only owner is `owner`, as nearly always."""
    if live is None or owner is None or live.owners == (owner.uid,):
        return []
    return live.owner_references()


def _readable(target: Target[Any]) -> Any:
    return target.type if issubclass(target.type, Resource) else target.kind


def _bytes_of(obj: AnyObject) -> bytes:
    source = obj.source if isinstance(obj, Resource) else None
    return encode(obj) if source is None else source


def _entry_of(obj: AnyObject) -> Entry:
    owners = tuple(one.uid for one in references_of(obj))
    return Entry(obj.key, obj.uid, obj.resource_version, 0, (), owners, False, _bytes_of(obj))
