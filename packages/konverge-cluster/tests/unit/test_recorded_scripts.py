"""The embedded server responds like the recorded real server (`python tools/record_responses.py` records)."""

from __future__ import annotations

import asyncio
import gzip
import json
from functools import cache
from typing import Any

import pytest

from konverge.testing.virtual_time import VirtualTimeLoop
from konverge_cluster.embedded_server import EmbeddedServer
from repository import DATA
from script_responses import send_step
from scripts import SCRIPTS
from two_servers import EmbeddedApi, with_namespace

RECORDINGS = DATA / "recorded-answers.json.gz"


@cache
def recorded() -> dict[str, list[Any]]:
    return dict(json.loads(gzip.decompress(RECORDINGS.read_bytes())))


@pytest.mark.parametrize(("number", "name"), list(enumerate(SCRIPTS)))
def test_the_embedded_server_responds_as_the_real_one_did(number: int, name: str) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        # One moment for all: the order of managed fields depends on the second of each write.
        api = EmbeddedApi(EmbeddedServer(clock=lambda: 1_800_000_000.0), runner)
        api.namespace = f"recorded-{number}"
        with_namespace(api)

        for step, theirs in zip(SCRIPTS[name], recorded()[name], strict=True):
            assert send_step(api, step) == theirs, f"{step.method} {step.path} {str(step.body)[:200]}"
