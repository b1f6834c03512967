"""The differential fuzzer in every test run: always the same plays, so many requests as fit into a minute.

`KONVERGE_FUZZ_REQUESTS` asks for more of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from both_servers import EmbeddedServerThread, RealServer
from differential import DifferentialRunner, fuzz
from fuzz_catalog import KINDS
from fuzz_scenarios import scenario_of
from konverge.testing import ControlPlane

REQUESTS = int(os.environ.get("KONVERGE_FUZZ_REQUESTS", "8000"))


@pytest.fixture(scope="module")
def stage(control_plane: ControlPlane) -> Iterator[DifferentialRunner]:
    made = DifferentialRunner(EmbeddedServerThread(), RealServer(control_plane))
    made.prepare()
    yield made
    for server in made.servers:
        server.close()


@pytest.mark.parametrize("kind", KINDS)
def test_generated_requests_are_answered_alike(stage: DifferentialRunner, kind: str) -> None:
    found = fuzz(stage, requests=REQUESTS // len(KINDS), kinds=[kind])

    assert not found, "\n\n".join(map(str, found[:5]))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_seed_decides_the_whole_play(kind: object) -> None:
    assert scenario_of(7, kind, 30) == scenario_of(7, kind, 30)  # type: ignore[arg-type]
    assert scenario_of(7, kind, 30) != scenario_of(8, kind, 30)  # type: ignore[arg-type]
