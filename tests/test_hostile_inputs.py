"""Requests that are cheap to send and expensive to handle: refused with bounded time and memory, never a traceback.

Each runs in a process of its own, with limits: one that would take everything is ended there. What the real server
responds is compared in tests/contract/test_hostile_inputs_on_both.py.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostile_inputs import BOMBS, HOSTILE, MAPS
from konverge.wire.messages import Request
from konverge_cluster.cel.string_format import format_text
from konverge_cluster.embedded_server import EmbeddedServer

PROGRAM = Path(__file__).parent / "support" / "hostile_inputs.py"
GIB = 1024**3


def limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 * GIB, 2 * GIB))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))


def measure(*names: str) -> list[dict[str, Any]]:
    """Return what requests got and took, in a process of their own."""
    command = [sys.executable, str(PROGRAM), *names]
    done = subprocess.run(command, capture_output=True, preexec_fn=limit_resources, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little_time_and_memory(name: str) -> None:
    (measured,) = measure(name)

    assert measured["cpu"] < 3
    assert measured["memory"] < 64 * 1024**2


def test_no_hostile_request_fails_in_the_server() -> None:
    names = [name for name in HOSTILE if name not in BOMBS]

    for name, measured in zip(names, measure(*names), strict=True):
        assert "the server could not handle the request" not in measured["message"], name
        assert measured["cpu"] < 3, name
        assert measured["memory"] < 64 * 1024**2, name


@pytest.mark.parametrize(
    ("text", "expected"),
    [("%.999999999f", "%!(NOVERB)"), ("%.999999999e", "%!(NOVERB)"), ("%.5000f", "1.5" + "0" * 135)],
)
def test_a_precision_in_cel_does_not_fill_the_memory(text: str, expected: str) -> None:
    assert format_text(text, [1.5]) == expected


async def test_other_requests_are_handled_while_a_large_yaml_body_is_decoded() -> None:
    server = EmbeddedServer()
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n"
    body = (head + "".join(f"  k{index}: v\n" for index in range(20_000))).encode()
    finished: list[str] = []

    async def send(name: str, request: Request) -> None:
        response = await server.handle(request)
        finished.append(f"{name} {response.status}")

    async with asyncio.TaskGroup() as group:
        group.create_task(send("large", Request("POST", MAPS, (), {"content-type": "application/yaml"}, body=body)))
        group.create_task(send("small", Request("GET", MAPS, (), {})))

    assert finished == ["small 200", "large 201"]
