"""One exchange with a webhook: a review goes out, a review comes back, within a time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from konverge.wire.messages import Request
from konverge_cluster.webhook_client.https import HttpsTransport
from konverge_cluster.webhook_client.responses import HttpResponse, Review, WebhookCallError, read_response
from konverge_cluster.webhook_client.targets import Service, Target

__all__ = ["Handler", "Transport", "WebhookClient"]

Handler = Callable[[str, Review], Awaitable[Mapping[str, Any]]]
"""A webhook in this process: it is given the path and the review, and gives the review of its answer."""

TIMEOUT: Final = 30.0
"""How long the server waits for a webhook that has no time of its own."""

AGENT: Final = "kube-apiserver-admission"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Transport(Protocol):
    """How a request gets to a server that is not in this process; `HttpsCaller` is one."""

    async def __call__(
        self, server: str, request: Request, *, ca_bundle: bytes | None, server_name: str = ""
    ) -> HttpResponse: ...

    async def close(self) -> None: ...


class WebhookClient:
    """The way to every webhook of a cluster.

    Promises: a webhook in this process gets its own copy of what is sent, and its answer is read as one that came over
    the wire; a call that takes too long is cancelled; no lock is held while one is under way.
    """

    def __init__(self, call: Transport | None = None) -> None:
        self._transport = call or HttpsTransport()
        self._handlers: dict[Service, Handler] = {}
        self._addresses: dict[Service, str] = {}

    def serve(self, namespace: str, name: str, handler: Handler, *, port: int = 443) -> None:
        """Let a function of this process stand behind a service reference."""
        self._handlers[Service(namespace, name, port)] = handler

    def forward(self, namespace: str, name: str, address: str, *, port: int = 443) -> None:
        """Let the HTTPS server at `address` (`127.0.0.1:9443`) stand behind a service reference."""
        self._addresses[Service(namespace, name, port)] = address

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def convert(self, _crd: str, config: Mapping[str, Any], review: Review) -> Review:
        """Send a ConversionReview to the webhook of a `clientConfig`, as the custom resources ask for it.

        Raises: CalloutFailure.
        """
        return await self.post(Target.read(config), review)

    async def post(self, target: Target, review: Review, *, timeout: float = TIMEOUT) -> Review:
        """Send a review and return the one that came back, of the same kind.

        Raises: CalloutFailure.
        """
        body = _encode(review)
        # The receiver is told the time in whole seconds, rounded up.
        seconds = f"{math.ceil(timeout)}s"
        try:
            async with asyncio.timeout(timeout):
                response = await self._send(target, body, seconds)
        except TimeoutError:
            raise WebhookCallError(_posted(target, seconds, "context deadline exceeded")) from None
        return read_response(response, review["apiVersion"], review["kind"])

    async def _send(self, target: Target, body: bytes, seconds: str) -> HttpResponse:
        handler = self._handlers.get(target.service) if target.service else None
        if handler is not None:
            return await _call_handler(handler, target.path, body)
        server, name = self._server_of(target, seconds)
        headers = {"user-agent": AGENT, "accept": "application/json, */*", "content-type": "application/json"}
        request = Request("POST", target.path, (("timeout", seconds),), headers, body=body)
        try:
            return await self._transport(server, request, ca_bundle=target.ca_bundle, server_name=name)
        except WebhookCallError as failure:
            if failure.no_client:
                raise
            raise WebhookCallError(_posted(target, seconds, str(failure))) from failure

    def _server_of(self, target: Target, seconds: str) -> tuple[str, str]:
        if target.service is None:
            return target.server, ""
        address = self._addresses.get(target.service)
        if address is None:
            text = f'service "{target.service.name}" not found'
            raise WebhookCallError(_posted(target, seconds, text))
        return f"https://{address}", target.service.host


async def _call_handler(handler: Handler, path: str, body: bytes) -> HttpResponse:
    try:
        answer = await handler(path, _decode(body))
        return HttpResponse(200, _encode(answer), "application/json")
    except Exception as error:
        return HttpResponse(500, f"{type(error).__name__}: {error}".encode(), "text/plain")


def _posted(target: Target, seconds: str, why: str) -> str:
    return f'Post "{target.url}?timeout={seconds}": {why}'
