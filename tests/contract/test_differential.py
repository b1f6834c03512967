"""The differential fuzzer in every test run: always the same scenarios, with about a minute of requests.

`KONVERGE_FUZZ_REQUESTS` sets the number of requests.
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
def runner(control_plane: ControlPlane) -> Iterator[DifferentialRunner]:
    sessions_ = DifferentialRunner(EmbeddedServerThread(), RealServer(control_plane))
    sessions_.prepare()
    yield sessions_
    for server in sessions_.servers:
        server.close()


@pytest.mark.parametrize("kind", KINDS)
def test_generated_requests_give_equal_responses(runner: DifferentialRunner, kind: str) -> None:
    found = fuzz(runner, requests=REQUESTS // len(KINDS), kinds=[kind])

    assert not found, "\n\n".join(map(str, found[:5]))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_seed_determines_the_whole_scenario(kind: object) -> None:
    assert scenario_of(7, kind, 30) == scenario_of(7, kind, 30)  # type: ignore[arg-type]
    assert scenario_of(7, kind, 30) != scenario_of(8, kind, 30)  # type: ignore[arg-type]
