"""One blocking HTTPS request to a server on loopback, with the standard library.

The launcher polls servers until they are ready, and tests send requests that no client of ours should interpret.
Neither needs an event loop.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["HttpResponse", "is_ok", "send_request"]


@dataclass(frozen=True)
class HttpResponse:
    """The response of a server: status, headers (names in lower case), body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def send_request(
    port: int,
    method: str,
    path: str,
    *,
    tls: ssl.SSLContext,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 30.0,
) -> HttpResponse:
    """Send one request on a connection of its own and read the whole response."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return HttpResponse(response.status, fields, response.read())
    finally:
        connection.close()


def is_ok(port: int, path: str, *, tls: ssl.SSLContext) -> bool:
    """Report whether a GET of the path returns 200; a server that does not listen yet is not ok."""
    try:
        return send_request(port, "GET", path, tls=tls, timeout=5.0).status == 200
    except (OSError, http.client.HTTPException):
        return False
