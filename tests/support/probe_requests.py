"""Requests to a probe server, as kubelet and Prometheus send them: one blocking request, in a thread."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from dataclasses import dataclass

__all__ = ["ProbeResponse", "get"]


@dataclass(frozen=True)
class ProbeResponse:
    """The response of a probe server."""

    status: int
    headers: dict[str, str]
    text: str


def _get(port: int, path: str, method: str, headers: dict[str, str], tls: ssl.SSLContext | None) -> ProbeResponse:
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        if tls is None
        else http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
    )
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return ProbeResponse(response.status, fields, response.read().decode())
    finally:
        connection.close()


async def get(
    port: int, path: str, *, method: str = "GET", tls: ssl.SSLContext | None = None, **headers: str
) -> ProbeResponse:
    """Request a path; names of headers have underscores."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await asyncio.to_thread(_get, port, path, method, fields, tls)
