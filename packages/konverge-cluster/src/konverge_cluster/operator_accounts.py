"""The service account that an operator runs under, with the rights that `konverge manifests` generates for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from konverge.cli.manifests.rbac import rbac_objects
from konverge.cli.manifests.release import Release
from konverge.client import Client
from konverge.manager import Operator
from konverge.objects import Unstructured
from konverge.wire.messages import BufferedResponse, Request, Response, Transport, WebSocket, WebSocketTransport
from konverge_cluster.api.authorization import AUTHENTICATED, UserInfo

__all__ = ["NAMESPACE", "AccountTransport", "account_user", "create_account"]

NAMESPACE: Final = "operators"
"""The namespace of the accounts, and of the Service in the configurations of webhooks, which need not exist."""

_DENIAL: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def account_user(operator: Operator) -> UserInfo:
    """Return the user of an operator's service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{NAMESPACE}:{operator.name}", groups)


async def create_account(client: Client, operator: Operator) -> None:
    """Create the service account of an operator, its roles and bindings; existing ones are updated."""
    release = Release(operator=operator, target="operator", namespace=NAMESPACE, image="operator")
    namespace = Unstructured(apiVersion="v1", kind="Namespace", metadata={"name": NAMESPACE})
    for obj in (namespace, *rbac_objects(release)):
        await client.apply(obj, force=True)


class AccountTransport:
    """The transport of an operator under its own account: it calls `on_missing` for every rule that was missing.

    The argument is one line with what was denied and the rule to add. A rule is reported once. Other rejections, for
    example by admission, are not reported.
    """

    def __init__(self, inner: Transport, operator: Operator, on_missing: Callable[[str], None]) -> None:
        self.can_stall: bool = getattr(inner, "can_stall", True)
        self._inner = inner
        self._name = operator.name
        self._on_missing = on_missing
        self._reported: set[tuple[str, str, str]] = set()

    async def send(self, request: Request) -> Response:
        """Send a request, and look at its response if it was denied."""
        return await self._checked(await self._inner.send(request))

    async def open_websocket(self, request: Request, protocols: tuple[str, ...]) -> WebSocket | Response:
        """Open a WebSocket, for a command in a container, and look at the response if it was denied."""
        if not isinstance(self._inner, WebSocketTransport):
            raise TypeError(f"{type(self._inner).__name__} cannot open WebSockets")
        opened = await self._inner.open_websocket(request, protocols)
        return opened if isinstance(opened, WebSocket) else await self._checked(opened)

    async def _checked(self, response: Response) -> Response:
        if response.status != 403:
            return response
        async with response:
            body = await response.read()
        self._report(body)
        return BufferedResponse(response.status, body, dict(response.headers), response.warnings)

    async def close(self) -> None:
        """Close the transport."""
        await self._inner.close()

    def _report(self, body: bytes) -> None:
        found = _DENIAL.search(_message_of(body))
        if found is None or found.group("verb", "resource", "group") in self._reported:
            return
        verb, resource, group = found.group("verb", "resource", "group")
        self._reported.add((verb, resource, group))
        plural, _, subresource = resource.partition("/")
        argument = f", subresource={subresource!r}" if subresource else ""
        where = f" in namespace {found['namespace']}" if found["namespace"] else " at the cluster scope"
        self._on_missing(
            f"{self._name} may not {verb} {resource}{f' of {group}' if group else ''}{where}: declare"
            f" .needs(<kind of {plural}>, {verb!r}{argument}), which generates the rule"
            f' {{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
        )


def _message_of(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body).get("message", ""))
    except (msgspec.DecodeError, AttributeError):
        return ""
