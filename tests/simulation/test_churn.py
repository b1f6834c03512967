"""Objects that are deleted while controllers write are normal: nothing is logged as an error, and memory stays flat."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from churn import churn
from konverge_cluster.testing.fixtures import TestCluster
from repository import ROOT

GROWTH_LIMIT = 16.0  # in MB, of 24 written meanwhile in 20 rounds, and 48 in 40


async def test_deletions_during_reconciles_log_no_error(cluster: TestCluster, caplog: pytest.LogCaptureFixture) -> None:
    client = cluster.client()
    with caplog.at_level(logging.ERROR):
        for number in range(12):
            await churn(client, number)
        await cluster.settle()

    assert [record.getMessage() for record in caplog.records] == []
    namespaces = [one.name for one in await client.list("namespaces")]
    assert not [name for name in namespaces if name.startswith("churn-")]
    assert not await client.list("pods")


@pytest.mark.parametrize("rounds", [20, pytest.param(40, marks=pytest.mark.faults)])
def test_memory_does_not_grow_with_the_objects_that_came_and_went(rounds: int) -> None:
    program = ROOT / "tests" / "support" / "churn.py"
    output = subprocess.run(
        [sys.executable, program, str(rounds)], capture_output=True, text=True, check=True, timeout=300
    ).stdout

    _, *warm = [float(line) for line in output.split()]
    # The first fifth fills the history of the server and the caches of the interpreter.
    assert len(warm) == 4
    assert warm[-1] - warm[0] < GROWTH_LIMIT, f"resident memory in MB after each fifth: {output.split()}"
