"""Objects that are deleted while controllers write are normal: nothing is logged as an error, and memory stays flat."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from churn import EVERY_KIND, churn, deployment
from konverge.testing import run_in_virtual_time
from konverge_cluster.testing import TestCluster, virtual_clock
from repository import ROOT

GROWTH_LIMIT = 16.0  # in MB, of 24 written meanwhile in 20 rounds, and 48 in 40


def test_deletions_during_reconciles_log_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        left = run_in_virtual_time(_names_after_churn(), debug=False)

    assert [record.getMessage() for record in caplog.records] == []
    assert left == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def _names_after_churn() -> list[str]:
    """Return the names of the namespaces and pods that are left when as many have come and gone."""
    async with TestCluster(clock=virtual_clock) as cluster:
        client = cluster.client()
        for number in range(12):
            await churn(client, number, EVERY_KIND)
        await cluster.settle()
        return [one.name for kind in ("namespaces", "pods") for one in await client.list(kind)]


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


def test_a_run_with_the_same_seed_repeats() -> None:
    first, second = (run_in_virtual_time(_objects_after_churn(), debug=False) for _ in range(2))
    assert first
    assert first == second


async def _objects_after_churn() -> list[tuple[str, str]]:
    """Return the events of nodes and the objects of all namespaces: names are random, versions count all writes."""
    async with TestCluster(clock=virtual_clock) as cluster:
        client = cluster.client()
        await churn(client, 1, EVERY_KIND)
        await client.create(deployment("default", "web"))
        await cluster.settle()
        found = [one for kind in ("events", "pods", "namespaces") for one in await client.list(kind)]
        return [(one.name, one.metadata["resourceVersion"]) for one in found]
