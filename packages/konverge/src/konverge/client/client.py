"""The client: every verb of the Kubernetes API, for typed and unstructured objects.

The verbs that read are in `Reader`, together with the rules for kinds and names as arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

from konverge.client.access.config import ClientConfig, load_config
from konverge.client.caller import Observer, RequestInfo, WriteGuard
from konverge.client.commands import OUTPUT_LIMIT, ExecResult, exec_query, run_command
from konverge.client.reader import ClientOptions, Reader
from konverge.client.retry import RetryMode, RetryPolicy
from konverge.client.selectors import Fields, Labels, field_text, label_text
from konverge.client.targets import KindName, resolve_key, resolve_target
from konverge.client.writes import WriteEvent, WriteListener, base_version_of
from konverge.errors import NotFound
from konverge.objects import (
    AnyObject,
    Key,
    Kind,
    Model,
    Resource,
    Unstructured,
    decode,
    difference,
    encode,
    field,
    full_object,
    to_wire,
)
from konverge.wire import DeleteOptions, ListOptions, Query, WriteOptions, collection_path, object_path

__all__ = ["Client", "IssuedToken"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)

PatchType: TypeAlias = Literal["json", "merge", "strategic"]
Propagation: TypeAlias = Literal["", "Background", "Foreground", "Orphan"]

_PATCH_MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_APPLY_MEDIA = "application/apply-patch+yaml"


_POD = Kind("", "v1", "Pod", "pods")
_SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")


class IssuedToken(Model):
    """A token that the server issued, and when it expires. Its repr does not show the token."""

    token: str
    expiration_timestamp: datetime

    def __repr__(self) -> str:
        return f"IssuedToken(expiration_timestamp={self.expiration_timestamp!r})"


class _TokenRequest(Model):
    status: IssuedToken


class _ScaleSpec(Model):
    replicas: int = 0


class _Scale(Model):
    spec: _ScaleSpec = field(default_factory=_ScaleSpec)


class Client(Reader):
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
        # Imported here, so that only clients that use sockets load the HTTP library.
        from konverge.client.engines import new_transport

        config = config or load_config()
        options = ClientOptions(namespace=config.namespace)
        return cls(new_transport(config), options=options, retry=retry, guard=guard, observers=observers)

    _listener: WriteListener | None = None

    def with_write_listener(self, listener: WriteListener) -> Self:
        """Return a client on the same connections that calls `listener` after each successful write but dry runs."""
        clone = copy.copy(self)
        clone._listener = listener
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
        self._notify(WriteEvent("create", target.kind, key, response, created=True))
        return target.decode(response)

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
        self._notify(WriteEvent("patch", target.kind, key, response, False, base_version, subresource))
        return target.decode(response)

    async def apply(self, obj: R, *, force: bool = False, subresource: str = "") -> R:
        """Server-side apply an object: create it, or set the fields in `obj` and become their owner.

        Fields that `obj` does not contain are left alone, except those that this field manager applied before: they are
        removed.

        Raises: ApplyConflict when another manager owns a field that would change; `force=True` takes it over.
        """
        target, key = await self._resolve_object(obj)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource=subresource),
            query=self._write_options(force=force).query(),
            body=encode(_without_managed_fields(_complete(obj))),
            media=_APPLY_MEDIA,
        )
        info = RequestInfo("apply", target.kind.kind, str(key))
        status, response = await self._caller.call_with_status(request, info, retry=RetryMode.IDEMPOTENT)
        created = status == 201
        self._notify(WriteEvent("apply", target.kind, key, response, created, obj.resource_version, subresource))
        return target.decode(response)

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
        self._notify(WriteEvent("delete", resolved.kind, key, response, False, version))

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

    async def get_scale(self, kind: type[Resource] | KindName, name: str | Key, *, namespace: str | None = None) -> int:
        """Return the desired number of replicas of an object, from its scale subresource."""
        target, key = await self._resolve(kind, name, namespace)
        request = self._request("GET", object_path(target.kind, key, subresource="scale"))
        return _replicas(await self._call(request, "get scale of", target.kind, key, retry=RetryMode.IDEMPOTENT))

    async def scale(
        self, kind: type[Resource] | KindName, name: str | Key, replicas: int, *, namespace: str | None = None
    ) -> int:
        """Set the number of replicas with the scale subresource; return the number that the server stored."""
        target, key = await self._resolve(kind, name, namespace)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource="scale"),
            query=self._write_options().query(),
            body=encode({"spec": {"replicas": replicas}}),
            media=_PATCH_MEDIA["merge"],
        )
        return _replicas(await self._call(request, "scale", target.kind, key, retry=RetryMode.IDEMPOTENT))

    async def evict(self, pod: str | Key, *, namespace: str | None = None, grace_period: int | None = None) -> None:
        """Evict a pod.

        Raises: TooManyRequests when a disruption budget forbids it for now; the request is not retried.
        """
        key = resolve_key(_POD, pod, namespace, self.options.namespace)
        options = {} if grace_period is None else {"deleteOptions": {"gracePeriodSeconds": grace_period}}
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            **options,
        }
        path = object_path(_POD, key, subresource="eviction")
        request = self._request("POST", path, query=_dry_run(self.options.dry_run), body=encode(eviction))
        await self._call(request, "evict", _POD, key, retry=RetryMode.NEVER)

    async def exec(
        self,
        pod: str | Key,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> ExecResult:
        """Run a command in a container and return its output and exit code, whatever the code is.

        `stdin` is its standard input, which is then closed. All of it must be done within the timeout of the client
        (`client.using(timeout=600)`). The command is never started twice. It counts as a write for the write guard.

        Raises: ServerError when the command cannot be started, DecodeError when the output is longer than
        `output_limit` bytes, TransportError when the connection is cut or the time is up.
        """
        if isinstance(command, str) or not command:
            raise TypeError(f'exec: expected a list of words such as ["sh", "-c", "date"], got {command!r:.100}')
        key = resolve_key(_POD, pod, namespace, self.options.namespace)
        query = exec_query(command, container, stdin=stdin is not None)
        request = self._request("GET", object_path(_POD, key, subresource="exec"), query=query, stream=True)
        info = RequestInfo("exec in", _POD.kind, str(key))
        return await run_command(self._caller, request, info, stdin, limit=output_limit)

    async def write_subresource(
        self, obj: AnyObject, subresource: str, body: Any, *, method: Literal["POST", "PUT"] = "POST"
    ) -> bytes:
        """Send `body` to a subresource, such as `pods/binding` or `namespaces/finalize`; return the response body."""
        target, key = await self._resolve_object(obj)
        path = object_path(target.kind, key, subresource=subresource)
        request = self._request(method, path, query=self._write_options().query(), body=encode(body))
        return await self._call(request, f"{subresource} of", target.kind, key)

    async def create_token(
        self,
        service_account: str | Key,
        *,
        namespace: str | None = None,
        audiences: tuple[str, ...] = (),
        lifetime: int = 3600,
    ) -> IssuedToken:
        """Request a token of a service account that is valid for about `lifetime` seconds."""
        key = resolve_key(_SERVICE_ACCOUNT, service_account, namespace, self.options.namespace)
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": list(audiences), "expirationSeconds": lifetime},
        }
        path = object_path(_SERVICE_ACCOUNT, key, subresource="token")
        request = self._request("POST", path, body=encode(review))
        return decode(_TokenRequest, await self._call(request, "create token of", _SERVICE_ACCOUNT, key)).status

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
            request = self._request("PATCH", path, query=options, body=encode(patch), media=_PATCH_MEDIA["merge"])
        response = await self._call(request, verb, target.kind, key, retry=RetryMode.IDEMPOTENT)
        self._notify(WriteEvent("update", target.kind, key, response, False, obj.resource_version, subresource))
        return target.decode(response)

    def _notify(self, event: WriteEvent) -> None:
        # The response of a subresource other than status is another kind of object.
        if self._listener is not None and not self.options.dry_run and event.subresource in ("", "status"):
            self._listener(event)

    def _write_options(self, *, force: bool = False) -> WriteOptions:
        options = self.options
        return WriteOptions(
            force=force,
            dry_run=options.dry_run,
            field_manager=options.field_manager,
            field_validation=options.field_validation,
        )


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


def _replicas(body: bytes) -> int:
    return decode(_Scale, body).spec.replicas


def _dry_run(dry_run: bool) -> Query:
    return (("dryRun", "All"),) if dry_run else ()
