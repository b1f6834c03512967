"""The client: every verb of the Kubernetes API, typed and untyped.

`Reader` holds the reading half, and says how kinds and names are given.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

from konverge.client.access.config import ClientConfig, load_config
from konverge.client.caller import Asked, Observer, WriteGuard
from konverge.client.reader import Reader, Settings
from konverge.client.retry import Repeat, RetryPolicy
from konverge.client.selectors import Fields, Labels, field_text, label_text
from konverge.client.targets import KindName, key_in, target_of
from konverge.client.writes import WriteListener, Written, base_version_of
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
    to_wire,
    whole,
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
    """A token that the server issued, and until when it is valid. It does not show itself."""

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
    """A client of one API server: all that a `Reader` can, and every write.

    Promises:

    - a write that may have been carried out is repeated only where carrying it out twice is the same as once;
    - `update` sends only what was edited, under the version that was read, and nothing when nothing was edited;
    - an object passed to `delete` is deleted only if it is still that one (its uid);
    - no write leaves after the write guard said no.

    A client is made with a transport and starts nothing; `connect` makes one from the usual configuration. Leave it
    with `close`, or use it as `async with`.
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
        """Make a client of the cluster that the configuration names; the first request connects.

        Raises: ConfigError when no cluster is configured.
        """
        # Loaded here, so that only who talks over sockets pays for the HTTP library.
        from konverge.client.transport import HttpTransport

        config = config or load_config()
        settings = Settings(namespace=config.namespace)
        return cls(HttpTransport(config), settings=settings, retry=retry, guard=guard, observers=observers)

    _listener: WriteListener | None = None

    def telling(self, listener: WriteListener) -> Self:
        """Give a client on the same connections that tells each write that succeeded, dry runs aside."""
        twin = copy.copy(self)
        twin._listener = listener
        return twin

    def guarded(self, guard: WriteGuard) -> Self:
        """Give a client on the same connections whose writes leave only if this guard allows it."""
        twin = copy.copy(self)
        twin._caller = self._caller.guarded_by(guard)
        return twin

    def without_warnings(self) -> Self:
        """Give a client on the same connections that logs no warnings of the server: for those who know better."""
        twin = copy.copy(self)
        twin._caller = self._caller.without_warnings()
        return twin

    def observed(self, *observers: Observer) -> Self:
        """Give a client on the same connections whose exchanges are told to these observers as well."""
        twin = copy.copy(self)
        twin._caller = self._caller.observed_by(observers)
        return twin

    async def create(self, obj: R) -> R:
        """Create an object and give it as the server stored it.

        A create that may have happened (the connection was cut) is not repeated: read whether it did.

        Raises: AlreadyExists when there is one of that name.
        """
        target, key = await self._of(obj)
        path = collection_path(target.kind, key.namespace)
        request = self._request("POST", path, query=self._write_options().query(), body=encode(_complete(obj)))
        answer = await self._call(request, "create", target.kind, key)
        self._tell(Written("create", target.kind, key, answer, created=True))
        return target.read(answer)

    async def update(self, obj: R) -> R:
        """Write an edited object back, under the version it was read at.

        Of a typed object only the edit is sent, as a merge patch, and nothing at all when there is none; fields that
        its class does not know stay as they are. An untyped object is sent whole.

        Raises: Conflict when somebody else wrote meanwhile: read again and decide again.
        """
        return await self._update(obj, "")

    async def update_status(self, obj: R) -> R:
        """Write an edited status back, under the version it was read at; all other edits stay unsent."""
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
        target, key = await self._place(kind, name, namespace)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource=subresource),
            query=self._write_options().query(),
            body=encode(patch),
            media=_PATCH_MEDIA[patch_type],
        )
        repeat = Repeat.ANY if patch_type == "merge" else Repeat.UNREAD
        answer = await self._call(request, "patch", target.kind, key, repeat=repeat)
        base_version = base_version_of(patch)
        self._tell(Written("patch", target.kind, key, answer, False, base_version, subresource))
        return target.read(answer)

    async def apply(self, obj: R, *, force: bool = False, subresource: str = "") -> R:
        """Apply an object server-side: create it, or make the fields it names so, and own them.

        What is not named is left alone; what this field manager named before and does not now is removed.

        Raises: ApplyConflict when another manager owns a field that would change; `force=True` takes it.
        """
        target, key = await self._of(obj)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource=subresource),
            query=self._write_options(force=force).query(),
            body=encode(_without_managed_fields(_complete(obj))),
            media=_APPLY_MEDIA,
        )
        asked = Asked("apply", target.kind.kind, str(key))
        status, answer = await self._caller.answer(request, asked, repeat=Repeat.ANY)
        written = Written("apply", target.kind, key, answer, status == 201, obj.resource_version, subresource)
        self._tell(written)
        return target.read(answer)

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
        """Delete an object: `delete(pod)` only if it is still that one, `delete(Pod, "web")` whichever has the name.

        `unchanged` deletes it only at the version that was read. An object with finalizers goes when the last of them
        is removed: `wait_for` with `deleted()` waits for that.

        Raises: NotFound when it is not there (unless `missing_ok`), Conflict when the name is another object's now.
        """
        if isinstance(target, Resource | Unstructured):
            if name is not None or namespace is not None:
                raise TypeError("an object says itself what it is called: leave out name and namespace")
            place, key = await self._of(target)
            uid = target.uid
        elif name is not None:
            place, key = await self._place(target, name, namespace)
            uid = ""
        else:
            raise TypeError("delete takes an object, or a kind and a name; for all objects use delete_collection")
        version = target.resource_version if isinstance(target, Resource | Unstructured) else ""
        options = DeleteOptions(
            propagation=propagation,
            grace_period=grace_period,
            uid=uid,
            resource_version=version if unchanged else "",
            dry_run=self.settings.dry_run,
        )
        request = self._request("DELETE", object_path(place.kind, key), body=options.body())
        repeat = Repeat.ANY if uid else Repeat.UNREAD
        try:
            answer = await self._call(request, "delete", place.kind, key, repeat=repeat)
        except NotFound:
            if not missing_ok:
                raise
            return
        self._tell(Written("delete", place.kind, key, answer, False, version))

    async def delete_collection(
        self,
        kind: type[Resource] | KindName,
        *,
        namespace: str = "",
        labels: Labels = "",
        fields: Fields = "",
        propagation: Propagation = "",
    ) -> None:
        """Delete all objects that the selectors pick, of one namespace, or of all for a cluster-scoped kind."""
        target = await target_of(kind, self.discovery)
        if target.kind.namespaced and not namespace:
            raise ValueError(f"delete_collection of {target.kind.kind} needs a namespace: the server knows no other")
        request = self._request(
            "DELETE",
            collection_path(target.kind, namespace),
            query=ListOptions(label_selector=label_text(labels), field_selector=field_text(fields)).query(),
            body=DeleteOptions(propagation=propagation, dry_run=self.settings.dry_run).body(),
        )
        await self._call(request, "delete all", target.kind, Key(namespace, ""))

    async def get_scale(self, kind: type[Resource] | KindName, name: str | Key, *, namespace: str | None = None) -> int:
        """Give the number of replicas that an object asks for, by its scale subresource."""
        target, key = await self._place(kind, name, namespace)
        request = self._request("GET", object_path(target.kind, key, subresource="scale"))
        return _replicas(await self._call(request, "get scale of", target.kind, key, repeat=Repeat.ANY))

    async def scale(
        self, kind: type[Resource] | KindName, name: str | Key, replicas: int, *, namespace: str | None = None
    ) -> int:
        """Set the number of replicas by the scale subresource; give the number that the server stored."""
        target, key = await self._place(kind, name, namespace)
        request = self._request(
            "PATCH",
            object_path(target.kind, key, subresource="scale"),
            query=self._write_options().query(),
            body=encode({"spec": {"replicas": replicas}}),
            media=_PATCH_MEDIA["merge"],
        )
        return _replicas(await self._call(request, "scale", target.kind, key, repeat=Repeat.ANY))

    async def evict(self, pod: str | Key, *, namespace: str | None = None, grace_period: int | None = None) -> None:
        """Ask for a pod to be evicted; a disruption budget may forbid it for now.

        Raises: TooManyRequests when the budget says no; it is not asked again here.
        """
        key = key_in(_POD, pod, namespace, self.settings.namespace)
        options = {} if grace_period is None else {"deleteOptions": {"gracePeriodSeconds": grace_period}}
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            **options,
        }
        path = object_path(_POD, key, subresource="eviction")
        request = self._request("POST", path, query=_dry_run(self.settings.dry_run), body=encode(eviction))
        await self._call(request, "evict", _POD, key, repeat=Repeat.NEVER)

    async def act(
        self, obj: AnyObject, subresource: str, body: Any, *, method: Literal["POST", "PUT"] = "POST"
    ) -> bytes:
        """Send something to a subresource that acts on an object: `pods/binding`, `namespaces/finalize`."""
        target, key = await self._of(obj)
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
        """Ask for a token of a service account that is valid for about `lifetime` seconds."""
        key = key_in(_SERVICE_ACCOUNT, service_account, namespace, self.settings.namespace)
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": list(audiences), "expirationSeconds": lifetime},
        }
        path = object_path(_SERVICE_ACCOUNT, key, subresource="token")
        request = self._request("POST", path, body=encode(review))
        return decode(_TokenRequest, await self._call(request, "create token of", _SERVICE_ACCOUNT, key)).status

    async def _update(self, obj: R, subresource: str) -> R:
        target, key = await self._of(obj)
        if not obj.resource_version:
            raise ValueError(f"{obj.kind} {key} has no resource version: read it first, or apply it")
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
        answer = await self._call(request, verb, target.kind, key, repeat=Repeat.ANY)
        self._tell(Written("update", target.kind, key, answer, False, obj.resource_version, subresource))
        return target.read(answer)

    def _tell(self, written: Written) -> None:
        # The answer of a subresource other than status is another kind of object.
        if self._listener is not None and not self.settings.dry_run and written.subresource in ("", "status"):
            self._listener(written)

    def _write_options(self, *, force: bool = False) -> WriteOptions:
        settings = self.settings
        return WriteOptions(
            force=force,
            dry_run=settings.dry_run,
            field_manager=settings.field_manager,
            field_validation=settings.field_validation,
        )


def _complete(obj: AnyObject) -> AnyObject | dict[str, Any]:
    """Give all that an object came with and holds now; what came in a list has no apiVersion and kind of its own."""
    if isinstance(obj, Unstructured) or obj.source is None:
        return obj
    return {"apiVersion": obj.api_version, "kind": obj.kind, **whole(obj)}


def _without_managed_fields(obj: AnyObject | dict[str, Any]) -> AnyObject | dict[str, Any]:
    """An apply that came with managed fields would be refused."""
    if isinstance(obj, Resource):
        return obj if not obj.metadata.managed_fields else _without_managed_fields(to_wire(obj))
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _replicas(body: bytes) -> int:
    return decode(_Scale, body).spec.replicas


def _dry_run(dry_run: bool) -> Query:
    return (("dryRun", "All"),) if dry_run else ()
