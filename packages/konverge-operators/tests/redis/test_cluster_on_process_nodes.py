"""RedisCluster on real servers on process nodes: formed, scaled under load, killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from redis_clients import kill, operating, primary_pods, scale

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.plain_loop]


async def test_no_acknowledged_key_is_lost_while_shards_come_and_go(
    record_property: Callable[[str, object], None],
) -> None:
    async with operating() as (cluster, store):
        await store.fill(10_000)
        assert len(store.acknowledged) == 10_000
        async with store.load():
            await scale(cluster, 4)
            await kill(cluster, (await primary_pods(cluster))[0])
            await scale(cluster, 3)
        lost, possibly_lost = await store.lost()
        assert lost == []
        assert len(store.acknowledged) > 10_100
        record_property("writes without an acknowledgement that are not there", len(possibly_lost))
