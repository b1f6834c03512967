"""The client: every verb of the Kubernetes API, for typed and unstructured objects.

The verbs that read are in `Reader`, together with the rules for kinds and names as arguments.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

from konverge.client.access.config import ClientConfig
from konverge.client.caller import Observer, RequestInfo, WriteGuard
from konverge.client.options import ClientOptions
from konverge.client.retry import RetryMode, RetryPolicy
from konverge.client.selectors import Fields, Labels, field_text, label_text
from konverge.client.subresources import MERGE_PATCH, IssuedToken, SubresourceClient
from konverge.client.targets import KindName, Target, resolve_target
from konverge.client.writes import WriteEvent, WriteListener, Written, base_version_of
from konverge.errors import DecodeError, NotFound
from konverge.objects import (
    AnyObject,
    Key,
    Resource,
    Unstructured,
    decode_with_document,
    difference,
    encode,
    full_object,
    to_wire,
)
from konverge.wire import DeleteOptions, ListOptions, SocketTransport, collection_path, object_path

__all__ = ["Client", "IssuedToken"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)

PatchType: TypeAlias = Literal["json", "merge", "strategic"]
Propagation: TypeAlias = Literal["", "Background", "Foreground", "Orphan"]

_PATCH_MEDIA = {
    "json": "application/json-patch+json",
    "merge": MERGE_PATCH,
    "strategic": "application/strategic-merge-patch+json",
}
_APPLY_MEDIA = "application/apply-patch+yaml"


class Client(SubresourceClient):
    """A client of one API server: a `Reader` that also writes.

    Promises:

    - a write that may have been processed is retried only if it is idempotent;
    - `update` sends only the edits, with the version that was read, and nothing when there are no edits;
    - an object passed to `delete` is deleted only if its uid still matches;
    - no write is sent once the write guard refuses it.

    The constructor takes a transport and starts nothing; `connect` takes the usual configuration. Call `close` at the
    end, or use `async with`.
    """

    @classmethod
    def connect(
        cls,
        config: ClientConfig | None = None,
        *,
        retry: RetryPolicy | None = None,
        guard: WriteGuard | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> Self:
        """Return a client of the configured cluster; the first request opens a connection.

        Raises: ConfigError when no cluster is configured.
        """
        # Imported here, so that only clients that use sockets load the HTTP library and what reads kubeconfig files.
        from konverge.client.access.loading import load_config
        from konverge.client.engines import new_transport

        config = config or load_config()
        options = ClientOptions(namespace=config.namespace)
        return cls(new_transport(config), options=options, retry=retry, guard=guard, observers=observers)

    _listener: WriteListener | None = None

    def with_new_transport(self) -> Client | None:
        """Return a new client of the same server for another event loop, or None if the transport has no copy.

        A transport over sockets has; one to a server in the same process has not: the server runs on this loop. The new
        client has the options of this one, connections of its own, and neither its observers nor its write guard.
        """
        transport = self._caller.transport
        return Client(transport.copy(), options=self.options) if isinstance(transport, SocketTransport) else None

    def with_write_listener(self, listener: WriteListener) -> Self:
        """Return a client on the same connections that calls `listener` after each successful write but dry runs."""
        clone = copy.copy(self)
        clone._listener = listener
        return clone

    def with_retry(self, retry: RetryPolicy) -> Self:
        """Return a client on the same connections with another retry policy."""
        clone = copy.copy(self)
        clone._caller = self._caller.with_policy(retry)
        return clone

    def with_write_guard(self, guard: WriteGuard) -> Self:
        """Return a client on the same connections that sends a write only if `guard` allows it."""
        clone = copy.copy(self)
        clone._caller = self._caller.with_guard(guard)
        return clone

    def without_warnings(self) -> Self:
        """Return a client on the same connections that does not log the server's warnings."""
        clone = copy.copy(self)
        clone._caller = self._caller.without_warnings()
        return clone

    def with_observers(self, *observers: Observer) -> Self:
        """Return a client on the same connections that also calls these observers after each request."""
        clone = copy.copy(self)
        clone._caller = self._caller.with_observers(observers)
        return clone

    async def create(self, obj: R) -> R:
        """Create an object and return it as the server stored it.

        A create that may have been processed (the connection was cut) is not retried: read the object to find out.

        Raises: AlreadyExists when there is an object of that name.
        """
        target, key = await self._resolve_object(obj)
        path = collection_path(target.kind, key.namespace)
        request = self._request("POST", path, query=self._write_options().query(), body=encode(_complete(obj)))
        response = await self._call(request, "create", target.kind, key)
        return self._written(target, "create", key, response, created=True).obj

    async def update(self, obj: R) -> R:
        """Update an edited object, on condition that its resource version is unchanged; return the new object.

        For a typed object only the edits are sent, as a merge patch, and no request at all when there are none. Fields
        that its class does not know stay as they are. An unstructured object is sent as a whole.

        Raises: Conflict when the object changed since it was read: read it again and decide again.
        """
        return await self._update(obj, "")

    async def update_status(self, obj: R) -> R:
        """Update the status of an edited object as `update` does; all other edits are not sent."""
        return await self._update(obj, "status")

    @overload
    async def patch(
        self,
        kind: type[T],
        name: str | Key,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        namespace: str | None = None,
        subresource: str = "",
    ) -> T: ...
    @overload
    async def patch(
        self,
        kind: KindName,
        name: str | Key,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        namespace: str | None = None,
        subresource: str = "",
    ) -> Unstructured: ...
    async def patch(
        self,
        kind: type[Any] | KindName,
        name: str | Key,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        namespace: str | None = None,
        subresource: str = "",
    ) -> Any:
        """Patch an object: "merge" (RFC 7386), "json" (RFC 6902, a list of operations) or "strategic" (built-ins)."""
        if patch_type not in _PATCH_MEDIA:
            raise ValueError(f"unknown patch type {patch_type!r}: write one of {', '.join(_PATCH_MEDIA)}, or use apply")
        target, key = await self._resolve(kind, name, namespace)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource=subresource),
            query=self._write_options().query(),
            body=encode(patch),
            media=_PATCH_MEDIA[patch_type],
        )
        retry = RetryMode.IDEMPOTENT if patch_type == "merge" else RetryMode.UNPROCESSED
        response = await self._call(request, "patch", target.kind, key, retry=retry)
        base_version = base_version_of(patch)
        return self._written(target, "patch", key, response, False, base_version, subresource).obj

    async def apply(self, obj: R, *, force: bool = False, subresource: str = "") -> R:
        """Server-side apply an object: create it, or set the fields in `obj` and become their owner.

        Fields that `obj` does not contain are left alone, except those that this field manager applied before: they are
        removed.

        Raises: ApplyConflict when another manager owns a field that would change; `force=True` takes it over.
        """
        return (await self.send_apply(obj, force=force, subresource=subresource)).obj

    async def send_apply(self, obj: R, *, force: bool = False, subresource: str = "") -> Written[R]:
        """Server-side apply an object as `apply` does, and return the response also as JSON values."""
        target, key = await self._resolve_object(obj)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource=subresource),
            query=self._write_options(force=force, is_apply=True).query(),
            body=encode(_without_managed_fields(_complete(obj))),
            media=_APPLY_MEDIA,
        )
        info = RequestInfo("apply", target.kind.kind, str(key))
        status, response = await self._caller.call_with_status(request, info, retry=RetryMode.IDEMPOTENT)
        created = status == 201
        version = obj.resource_version
        return self._written(target, "apply", key, response, created, version, subresource)

    async def delete(
        self,
        target: AnyObject | type[Resource] | KindName,
        name: str | Key | None = None,
        *,
        namespace: str | None = None,
        propagation: Propagation = "",
        grace_period: int | None = None,
        missing_ok: bool = False,
        unchanged: bool = False,
    ) -> None:
        """Delete an object: `delete(pod)` only if its uid matches, `delete(Pod, "web")` whatever has that name.

        With `unchanged` the object is deleted only if its version is still the one that was read. An object with
        finalizers exists until the last of them is removed: `wait_for` with `is_deleted()` waits for that.

        Raises: NotFound when there is no such object (unless `missing_ok`), Conflict when the uid or version differs.
        """
        if isinstance(target, Resource | Unstructured):
            if name is not None or namespace is not None:
                raise TypeError("delete: an object has a name and namespace already (leave out name= and namespace=)")
            resolved, key = await self._resolve_object(target)
            uid = target.uid
        elif name is not None:
            resolved, key = await self._resolve(target, name, namespace)
            uid = ""
        else:
            raise TypeError("delete: expected an object, or a kind and a name (delete_collection deletes all objects)")
        version = target.resource_version if isinstance(target, Resource | Unstructured) else ""
        options = DeleteOptions(
            propagation=propagation,
            grace_period=grace_period,
            uid=uid,
            resource_version=version if unchanged else "",
            dry_run=self.options.dry_run,
        )
        request = self._request("DELETE", object_path(resolved.kind, key), body=options.body())
        retry = RetryMode.IDEMPOTENT if uid else RetryMode.UNPROCESSED
        try:
            response = await self._call(request, "delete", resolved.kind, key, retry=retry)
        except NotFound:
            if not missing_ok:
                raise
            return
        if self._listener is not None and not self.options.dry_run:
            self._listener(WriteEvent("delete", resolved.kind, key, response, False, version))

    async def delete_collection(
        self,
        kind: type[Resource] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        propagation: Propagation = "",
    ) -> None:
        """Delete all objects that match the selectors: of one namespace, or of a cluster-scoped kind."""
        target = await resolve_target(kind, self.discovery)
        if target.kind.namespaced and not namespace:
            raise ValueError(
                f"delete_collection {target.kind.kind}: the kind is namespaced, and the server deletes from one "
                "namespace only (write namespace=...)"
            )
        request = self._request(
            "DELETE",
            collection_path(target.kind, namespace),
            query=ListOptions(label_selector=label_text(labels), field_selector=field_text(fields)).query(),
            body=DeleteOptions(propagation=propagation, dry_run=self.options.dry_run).body(),
        )
        await self._call(request, "delete all", target.kind, Key(namespace, ""))

    async def _update(self, obj: R, subresource: str) -> R:
        target, key = await self._resolve_object(obj)
        if not obj.resource_version:
            raise ValueError(f"update {obj.kind} {key}: it has no resourceVersion (read it first, or use apply)")
        path = object_path(target.kind, key, subresource=subresource)
        verb = f"update {subresource}".strip() + " of" if subresource else "update"
        options = self._write_options().query()
        if isinstance(obj, Unstructured) or obj.source is None:
            request = self._request("PUT", path, query=options, body=encode(obj))
        else:
            patch = difference(obj)
            if subresource:
                patch = {name: patch[name] for name in (subresource,) if name in patch}
            if not patch:
                return obj
            patch.setdefault("metadata", {})["resourceVersion"] = obj.resource_version
            request = self._request("PATCH", path, query=options, body=encode(patch), media=MERGE_PATCH)
        response = await self._call(request, verb, target.kind, key, retry=RetryMode.IDEMPOTENT)
        version = obj.resource_version
        return self._written(target, "update", key, response, False, version, subresource).obj

    def _written(
        self,
        target: Target[R],
        verb: str,
        key: Key,
        response: bytes,
        created: bool = False,
        base_version: str = "",
        subresource: str = "",
    ) -> Written[R]:
        """Decode the response of a write, once for the caller and the listener.

        The listener is notified even if the response does not decode into its class: the object was written.
        """
        # The response of a subresource other than status is another kind of object.
        notifies = self._listener is not None and not self.options.dry_run and subresource in ("", "status")
        facts = (verb, target.kind, key, response, created, base_version, subresource)
        try:
            obj, document = decode_with_document(target.type, response)
        except DecodeError:
            if notifies and self._listener is not None:
                self._listener(WriteEvent(*facts))
            raise
        if isinstance(obj, Unstructured):
            obj = target.complete(obj)
        if notifies and self._listener is not None:
            self._listener(WriteEvent(*facts, obj, document))
        return Written(obj, document)


def _complete(obj: AnyObject) -> AnyObject | dict[str, Any]:
    """Return the object with all fields that it was decoded from; an item of a list lacks apiVersion and kind."""
    if isinstance(obj, Unstructured) or obj.source is None:
        return obj
    return {"apiVersion": obj.api_version, "kind": obj.kind, **full_object(obj)}


def _without_managed_fields(obj: AnyObject | dict[str, Any]) -> AnyObject | dict[str, Any]:
    """Return the object without managed fields: the server rejects an apply that contains them."""
    if isinstance(obj, Resource):
        return obj if not obj.metadata.managed_fields else _without_managed_fields(to_wire(obj))
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
