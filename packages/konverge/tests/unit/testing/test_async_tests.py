"""The plugin that runs tests which are coroutines; what it does with tasks and time is in test_virtual_time."""

from __future__ import annotations

import asyncio

import pytest


async def test_the_loop_of_a_test_is_in_debug_mode() -> None:
    assert asyncio.get_running_loop().get_debug()


@pytest.mark.plain_loop
async def test_a_marked_test_runs_without_debug_mode() -> None:
    assert not asyncio.get_running_loop().get_debug()


@pytest.mark.plain_loop
@pytest.mark.real_time
async def test_so_does_one_in_real_time() -> None:
    assert not asyncio.get_running_loop().get_debug()
