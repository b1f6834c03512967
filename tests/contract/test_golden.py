"""Recorded requests, replayed on the embedded server: the responses are those of a real server, except uids and times.

`make golden` creates the recordings.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from both_servers import EmbeddedServerThread
from golden import WEBHOOKS, Exchange, golden_webhooks, read_recording, replay
from konverge.testing.virtual_time import VirtualTimeLoop
from konverge.wire.messages import Request
from konverge_cluster.embedded_server import EmbeddedServer

RECORDED = ("errors-and-writes", "lists-and-watches", "custom-resources", "defaults", WEBHOOKS)

DIFFERENCES: dict[tuple[str, str], str] = {
    ("custom-resources", "accept protobuf CR"): "the embedded server answers in JSON: it writes no protobuf",
}
"""Intended differences, with the reason; the status codes are compared anyway."""


class Replay:
    """The embedded server on virtual time."""

    hooks = None

    def __init__(self) -> None:
        # A constant time: the order of managed fields depends on the second of each write.
        self._server = EmbeddedServer(clock=lambda: 1_800_000_000.0, seed=1)
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        url = urlsplit(path)
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return self._runner.run(self._send(Request(method, unquote(url.path), query, headers, body=body)))

    async def _send(self, request: Request) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        async with await self._server.handle(request) as response:
            return response.status, response.headers, response.warnings, await response.read()

    def close(self) -> None:
        self._runner.close()


class RealTimeReplay:
    """The embedded server on real time, since it calls a webhook server."""

    def __init__(self) -> None:
        self._server = EmbeddedServerThread()
        self._directory = tempfile.TemporaryDirectory()
        self.hooks = golden_webhooks(Path(self._directory.name))

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        response = self._server.request(method, path, body or None, headers=headers)
        return response.status, response.headers, response.warnings, response.body

    def close(self) -> None:
        self._server.close()
        self.hooks.close()
        self._directory.cleanup()


@cache
def replayed(name: str) -> dict[str, tuple[Exchange, Exchange]]:
    """Return the responses of the real and of the embedded server, by label."""
    server = RealTimeReplay() if name == WEBHOOKS else Replay()
    try:
        exchanges = replay(read_recording(name), server.send, timeout=0.5, hooks=server.hooks)
        return {line["request"]["label"]: (line["answer"], response) for line, response in exchanges}
    finally:
        server.close()


def labels() -> Iterator[Any]:
    for name in RECORDED:
        for line in read_recording(name):
            yield pytest.param(name, line["request"]["label"], id=f"{name}: {line['request']['label']}")


@pytest.mark.parametrize(("name", "label"), list(labels()))
def test_the_embedded_server_responds_as_the_real_one_did(name: str, label: str) -> None:
    real, embedded = replayed(name)[label]

    assert embedded["status"] == real["status"], embedded["body"]
    if (name, label) not in DIFFERENCES:
        assert _ordered(embedded) == _ordered(real)


def _ordered(response: Exchange) -> str:
    """Return a response as text: differences of texts are easier to read than differences of dicts.

    Causes of an error are sorted: the real server validates the fields of a custom object in random order.
    """
    body = response["body"]
    causes = body.get("details", {}).get("causes", []) if isinstance(body, dict) else []
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        body["message"] = sorted(body["message"].partition(": [")[2].removesuffix("]").split(", "))
    return json.dumps(response, indent=1, sort_keys=True)
