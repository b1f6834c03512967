"""The client of admission and conversion webhooks: send a review, return the review of the response."""

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
"""A webhook in this process: called with the path and the review, it returns the review with the response."""

TIMEOUT: Final = 30.0
"""The timeout of a webhook without its own, in seconds."""

AGENT: Final = "kube-apiserver-admission"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Transport(Protocol):
    """Sends a request to a server outside this process; `HttpsTransport` implements it."""

    async def __call__(
        self, server: str, request: Request, *, ca_bundle: bytes | None, server_name: str = ""
    ) -> HttpResponse: ...

    async def close(self) -> None: ...


class WebhookClient:
    """The client for all webhooks of a cluster.

    Promises: a webhook in this process receives its own copy of the review, and its response is checked like one from
    the network; a call that exceeds its timeout is cancelled; no lock is held during a call.
    """

    def __init__(self, call: Transport | None = None) -> None:
        self._transport = call or HttpsTransport()
        self._handlers: dict[Service, Handler] = {}
        self._addresses: dict[Service, str] = {}

    def serve(self, namespace: str, name: str, handler: Handler, *, port: int = 443) -> None:
        """Register a function in this process as the backend of a service reference."""
        self._handlers[Service(namespace, name, port)] = handler

    def forward(self, namespace: str, name: str, address: str, *, port: int = 443) -> None:
        """Register the HTTPS server at `address` (`127.0.0.1:9443`) as the backend of a service reference."""
        self._addresses[Service(namespace, name, port)] = address

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def convert(self, _crd: str, config: Mapping[str, Any], review: Review) -> Review:
        """Send a ConversionReview to the webhook of a `clientConfig`; return the review of the response.

        Raises: WebhookCallError.
        """
        return await self.post(Target.read(config), review)

    async def post(self, target: Target, review: Review, *, timeout: float = TIMEOUT) -> Review:
        """Send a review and return the review of the response, which has the same kind.

        Raises: WebhookCallError.
        """
        body = _encode(review)
        # The query parameter `timeout` is in whole seconds, rounded up.
        seconds = f"{math.ceil(timeout)}s"
        try:
            async with asyncio.timeout(timeout):
                response = await self._send(target, body, seconds)
        except TimeoutError:
            raise WebhookCallError(_post_error_text(target, seconds, "context deadline exceeded")) from None
        return read_response(response, review["apiVersion"], review["kind"])

    async def _send(self, target: Target, body: bytes, seconds: str) -> HttpResponse:
        handler = self._handlers.get(target.service) if target.service else None
        if handler is not None:
            return await _call_handler(handler, target.path, body)
        server, name = self._server_for(target, seconds)
        headers = {"user-agent": AGENT, "accept": "application/json, */*", "content-type": "application/json"}
        request = Request("POST", target.path, (("timeout", seconds),), headers, body=body)
        try:
            return await self._transport(server, request, ca_bundle=target.ca_bundle, server_name=name)
        except WebhookCallError as failure:
            if failure.no_client:
                raise
            raise WebhookCallError(_post_error_text(target, seconds, str(failure))) from failure

    def _server_for(self, target: Target, seconds: str) -> tuple[str, str]:
        if target.service is None:
            return target.server, ""
        address = self._addresses.get(target.service)
        if address is None:
            text = f'service "{target.service.name}" not found'
            raise WebhookCallError(_post_error_text(target, seconds, text))
        return f"https://{address}", target.service.host


async def _call_handler(handler: Handler, path: str, body: bytes) -> HttpResponse:
    try:
        review = await handler(path, _decode(body))
        return HttpResponse(200, _encode(review), "application/json")
    except Exception as error:
        return HttpResponse(500, f"{type(error).__name__}: {error}".encode(), "text/plain")


def _post_error_text(target: Target, seconds: str, detail: str) -> str:
    return f'Post "{target.url}?timeout={seconds}": {detail}'
