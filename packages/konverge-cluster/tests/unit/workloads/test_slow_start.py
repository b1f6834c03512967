"""Slow start: batches double until one fails."""

from __future__ import annotations

import asyncio

from konverge.errors import Forbidden
from konverge_cluster.workloads.pods.batches import batch_sizes, run_all, slow_start


def test_batches_double_and_the_last_takes_the_rest() -> None:
    assert list(batch_sizes(0)) == []
    assert list(batch_sizes(1)) == [1]
    assert list(batch_sizes(10)) == [1, 2, 4, 3]


async def test_after_a_failure_the_batch_is_finished_and_no_other_starts() -> None:
    tried = []

    async def write(item: int) -> int:
        tried.append(item)
        await asyncio.sleep(1)
        if item == 1:
            raise Forbidden("no more")
        return item

    result = await slow_start(range(10), write)
    assert tried == [0, 1, 2]
    assert result.done == [0, 2]
    assert [str(error) for error in result.failed] == ["no more"]


async def test_concurrent_writes_take_the_time_of_one() -> None:
    async def write(item: int) -> int:
        await asyncio.sleep(5)
        return item

    before = asyncio.get_running_loop().time()
    assert sorted((await run_all(range(50), write)).done) == [*range(50)]
    assert asyncio.get_running_loop().time() - before == 5
