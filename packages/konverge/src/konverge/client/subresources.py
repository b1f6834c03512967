"""The client's verbs on subresources: scale, eviction, exec, tokens, and any other by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from konverge.client.caller import RequestInfo
from konverge.client.commands import OUTPUT_LIMIT, ExecResult, exec_query, run_command
from konverge.client.reader import Reader
from konverge.client.retry import RetryMode
from konverge.client.targets import KindName, resolve_key
from konverge.objects import AnyObject, Key, Kind, Model, Resource, decode, encode, field
from konverge.wire import Query, WriteOptions, object_path

__all__ = ["MERGE_PATCH", "IssuedToken", "SubresourceClient"]

MERGE_PATCH = "application/merge-patch+json"

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


class SubresourceClient(Reader):
    """A `Reader` that also writes subresources."""

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
            media=MERGE_PATCH,
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

    def _write_options(self, *, force: bool = False, is_apply: bool = False) -> WriteOptions:
        options = self.options
        # Unknown fields of an apply are an error in any case. Its validation looks only for doubled fields, which no
        # encoder writes, and costs the server a second parse.
        default: Literal["", "Ignore"] = "Ignore" if is_apply else ""
        return WriteOptions(
            force=force,
            dry_run=options.dry_run,
            field_manager=options.field_manager,
            field_validation=options.field_validation or default,
        )


def _replicas(body: bytes) -> int:
    return decode(_Scale, body).spec.replicas


def _dry_run(dry_run: bool) -> Query:
    return (("dryRun", "All"),) if dry_run else ()
