"""What a real server was asked and answered, replayed on the embedded one: the same answers, apart from uids and times.

The recordings are made by `make golden`.
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

from both_servers import InnerServer
from golden import WEBHOOKS, Answer, golden_hooks, play, read_recording
from konverge.testing.virtual_time import VirtualTimeLoop
from konverge.wire.messages import Request
from konverge_cluster.embedded_server import EmbeddedServer

RECORDED = ("errors-and-writes", "lists-and-watches", "custom-resources", "defaults", WEBHOOKS)

DIFFERENCES: dict[tuple[str, str], str] = {
    ("custom-resources", "accept protobuf CR"): "the embedded server answers in JSON: it writes no protobuf",
}
"""What differs on purpose, with the reason: the codes are compared all the same."""


class Replay:
    """The embedded server on virtual time."""

    hooks = None

    def __init__(self) -> None:
        # One moment for all: the order of managed fields depends on the second of each write.
        self._server = EmbeddedServer(clock=lambda: 1_800_000_000.0, seed=1)
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        url = urlsplit(path)
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return self._runner.run(self._send(Request(method, unquote(url.path), query, headers, body=body)))

    async def _send(self, request: Request) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        async with await self._server.handle(request) as answer:
            return answer.status, answer.headers, answer.warnings, await answer.read()

    def close(self) -> None:
        self._runner.close()


class RealTimeReplay:
    """The embedded server on real time, since it calls a webhook server."""

    def __init__(self) -> None:
        self._server = InnerServer()
        self._directory = tempfile.TemporaryDirectory()
        self.hooks = golden_hooks(Path(self._directory.name))

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        heard = self._server.ask(method, path, body or None, headers=headers)
        return heard.status, heard.headers, heard.warnings, heard.body

    def close(self) -> None:
        self._server.close()
        self.hooks.close()
        self._directory.cleanup()


@cache
def replayed(name: str) -> dict[str, tuple[Answer, Answer]]:
    """What the real server said, and what the embedded one says, by label."""
    replay = RealTimeReplay() if name == WEBHOOKS else Replay()
    try:
        played = play(read_recording(name), replay.send, patience=0.5, hooks=replay.hooks)
        return {line["request"]["label"]: (line["answer"], today) for line, today in played}
    finally:
        replay.close()


def labels() -> Iterator[Any]:
    for name in RECORDED:
        for line in read_recording(name):
            yield pytest.param(name, line["request"]["label"], id=f"{name}: {line['request']['label']}")


@pytest.mark.parametrize(("name", "label"), list(labels()))
def test_the_embedded_server_answers_as_a_real_one_did(name: str, label: str) -> None:
    real, embedded = replayed(name)[label]

    assert embedded["status"] == real["status"], embedded["body"]
    if (name, label) not in DIFFERENCES:
        assert _ordered(embedded) == _ordered(real)


def _ordered(answer: Answer) -> str:
    """The answer as text: the differences of two texts are easier to read than those of two dicts.

    Several causes of a refusal are sorted: the real server checks the fields of a custom object in any order.
    """
    body = answer["body"]
    causes = body.get("details", {}).get("causes", []) if isinstance(body, dict) else []
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        body["message"] = sorted(body["message"].partition(": [")[2].removesuffix("]").split(", "))
    return json.dumps(answer, indent=1, sort_keys=True)
