"""The HTTPS transport of the webhook client: one POST for each call, without redirects and without retries."""

from __future__ import annotations

import re
import socket
import ssl
from collections import OrderedDict
from typing import Final
from urllib.parse import urlsplit

from konverge.client.access.config import ClientConfig
from konverge.client.access.tls import Tls
from konverge.client.connection.limits import Limits
from konverge.client.transport import HttpTransport
from konverge.errors import ConfigError, DecodeError, TransportError
from konverge.wire.messages import Request
from konverge_cluster.webhook_client.responses import HttpResponse, WebhookCallError

__all__ = ["HttpsTransport"]

_MAX_TRANSPORTS: Final = 32
_UNKNOWN_ISSUERS: Final = (18, 19, 20, 21)
_NAME_MISMATCHES: Final = (62, 64)
_PEER: Final = re.compile(r"\('([^']+)', (\d+)")


class HttpsTransport:
    """Sends reviews to servers over HTTPS; keeps connections to the last few dozen servers.

    Promises: cancelling a call closes its connection; every error is a `WebhookCallError` with the text of Go's HTTP
    client, as far as Python's TLS library reports the same facts. A link-local address is never called: an object
    could otherwise have this server read the credentials of its machine.
    """

    def __init__(self) -> None:
        self._transports: OrderedDict[tuple[str, bytes | None, str], HttpTransport] = OrderedDict()

    async def __call__(
        self, server: str, request: Request, *, ca_bundle: bytes | None, server_name: str = ""
    ) -> HttpResponse:
        """Send a request to a server (`https://host:port`), with a certificate for `server_name` if one is set."""
        transport = await self._transport(server, ca_bundle, server_name)
        try:
            async with await transport.send(request) as response:
                body = await response.read()
                return HttpResponse(response.status, body, response.headers.get("content-type", ""))
        except TransportError as error:
            raise WebhookCallError(_error_text(error, server)) from error
        except DecodeError as error:
            text = f"unexpected error when reading response body. Please retry. Original error: {error}"
            raise WebhookCallError(text) from error

    async def close(self) -> None:
        """Close all connections."""
        while self._transports:
            await self._transports.popitem()[1].close()

    async def _transport(self, server: str, ca_bundle: bytes | None, server_name: str) -> HttpTransport:
        key = (server, ca_bundle, server_name)
        found = self._transports.get(key)
        if found is None:
            found = self._transports[key] = _make_transport(server, ca_bundle, server_name)
        self._transports.move_to_end(key)
        if len(self._transports) > _MAX_TRANSPORTS:
            await self._transports.popitem(last=False)[1].close()
        return found


def _make_transport(server: str, ca_bundle: bytes | None, server_name: str) -> HttpTransport:
    try:
        tls = Tls(ca=ca_bundle, server_name=server_name or None)
        tls.ca()
        return HttpTransport(ClientConfig(server=server, tls=tls), limits=Limits(link_local=False))
    except ConfigError as error:
        text = "unable to load root certificates: unable to parse bytes as PEM block"
        raise WebhookCallError(text, no_client=True) from error


def _error_text(error: TransportError, server: str) -> str:
    cause = error.__cause__
    match cause:
        case ssl.SSLCertVerificationError():
            return f"tls: failed to verify certificate: x509: {_certificate_error_text(cause, server)}"
        case socket.gaierror():
            return f"dial tcp: lookup {urlsplit(server).hostname}: no such host"
        case ConnectionResetError():
            return "read: connection reset by peer"
        case OSError() if not error.sent:
            return f"dial tcp {_peer(cause, server)}: connect: {_system_error_text(cause)}"
        case None if error.sent:
            return "EOF"
    return str(error).rpartition(": ")[2]


def _certificate_error_text(error: ssl.SSLCertVerificationError, server: str) -> str:
    if error.verify_code in _UNKNOWN_ISSUERS:
        return "certificate signed by unknown authority"
    if error.verify_code in _NAME_MISMATCHES:
        return f"certificate is not valid for {urlsplit(server).hostname}"
    return error.verify_message


def _peer(error: OSError, server: str) -> str:
    found = _PEER.search(str(error))
    parts = urlsplit(server)
    return f"{found[1]}:{found[2]}" if found else f"{parts.hostname}:{parts.port or 443}"


def _system_error_text(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return (error.strerror or str(error)).lower()
