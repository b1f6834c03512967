"""The Database operator on the embedded cluster with an engine in memory: creation, children, scaling, updates."""

from __future__ import annotations

import pytest

from databases import NAME, running
from konverge import is_ready
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Phase

pytestmark = pytest.mark.plain_loop


async def test_a_database_becomes_ready(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3)
        status = await world.status()
        print(status)
        for one in await world.events(): print(one)
        assert status.phase is Phase.READY
        assert (status.primary, status.ready_replicas, status.version) == (f"{NAME}-0", 3, "18.6")
        assert is_ready(await world.get())
