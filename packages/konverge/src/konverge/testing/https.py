"""One blocking HTTPS request to a server on loopback, with the standard library.

The launcher asks servers whether they are ready, and a test asks for what no client of ours should hide. Neither
wants an event loop.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "ask", "is_ok"]


@dataclass(frozen=True)
class Answer:
    """What a server said: code, headers (names in lower case), body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


def ask(
    port: int,
    method: str,
    path: str,
    *,
    tls: ssl.SSLContext,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 30.0,
) -> Answer:
    """Send one request on a connection of its own and read the whole answer."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())
    finally:
        connection.close()


def is_ok(port: int, path: str, *, tls: ssl.SSLContext) -> bool:
    """Whether the path answers 200; a server that is not there yet answers no."""
    try:
        return ask(port, "GET", path, tls=tls, timeout=5.0).status == 200
    except (OSError, http.client.HTTPException):
        return False
