"""Three Patroni members on process nodes, without the operator: what the engine does by itself."""

from __future__ import annotations

import time

import pytest

from database_load import Load, Login, Prober
from konverge_operators.database.postgresql.configuration import TTL, Configuration
from konverge_operators.database.postgresql.local_images import local_images
from patroni_clusters import PatroniCluster, manifests
from process_clusters import process_cluster

pytestmark = [pytest.mark.engines, pytest.mark.real_time]


async def test_three_members_fail_over_without_loss() -> None:
    async with process_cluster(*local_images()) as cluster:
        database = PatroniCluster(cluster)
        await database.create(*manifests(Configuration("db", synchronous="strict")))
        await database.wait_for_members(3)
        await database.wait_for_synchronous()
        first = await database.leader()
        load = Load(await database.service(), Login())
        await load.prepare()
        prober = Prober(Login(), lambda: database.addresses)

        async with load.running(), prober.running(list(database.addresses)):
            await load.progress()
            killed = time.monotonic()
            await cluster.cluster.faults.kill(database.key(first))
            back = await load.progress()
            await database.wait_for_members(3)
            await load.progress()

        print(f"killed {first}, {back.ended - killed:.1f} s without an acknowledged write")
        assert await database.leader() != first, "a replica leads"
        assert await load.missing() == []
        assert prober.violations() == []
        assert {one.member for one in prober.probes} == {first, await database.leader()}
        assert back.ended - killed < TTL + 5
