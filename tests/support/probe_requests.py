"""Asking a probe server as kubelet and Prometheus do: one blocking request, in a thread."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from dataclasses import dataclass

__all__ = ["Said", "ask"]


@dataclass(frozen=True)
class Said:
    """What it answered."""

    status: int
    headers: dict[str, str]
    text: str


def _ask(port: int, path: str, method: str, headers: dict[str, str], tls: ssl.SSLContext | None) -> Said:
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        if tls is None
        else http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
    )
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Said(answer.status, named, answer.read().decode())
    finally:
        connection.close()


async def ask(port: int, path: str, *, method: str = "GET", tls: ssl.SSLContext | None = None, **headers: str) -> Said:
    """Ask for a path; headers are named with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await asyncio.to_thread(_ask, port, path, method, named, tls)
