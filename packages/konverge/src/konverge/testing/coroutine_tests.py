"""How a plugin of pytest runs a test that is a coroutine; `konverge.testing.async_tests` has the rules."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed
from konverge.testing.virtual_time import VirtualTimeLoop

REAL_TIME_FIXTURES: Final = {"control_plane"}
REAL_TIME_LIMIT: Final = 120.0
TASK_TIMEOUT: Final = 5.0

COROUTINE: Final = pytest.StashKey[Callable[..., Awaitable[None]]]()
"""The test as its author wrote it: pytest-asyncio replaces it before `pytest_pyfunc_call`."""


def register_markers(config: pytest.Config) -> None:
    """Register the markers that choose the loop of a test."""
    config.addinivalue_line("markers", "real_time: an async test that needs real time, for sockets or processes")
    config.addinivalue_line(
        "markers", "plain_loop: an async test that is too long, or too exact, for asyncio's debug mode"
    )


def store_coroutine(item: pytest.Item) -> None:
    """Remember a test that is a coroutine, before another plugin replaces it."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.stash[COROUTINE] = item.obj


def replace_coroutine(item: pytest.Function) -> None:
    """Replace a test that is a coroutine by a function that runs it on a loop of its own."""
    test = item.stash.get(COROUTINE, None)
    if test is None:
        return
    del item.stash[COROUTINE]

    def run(**arguments: Any) -> None:
        run_test(item, test, arguments)

    item.obj = run


def run_test(item: pytest.Function, test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    """Run a coroutine on the loop that the markers of its test choose."""
    factory: Callable[[], asyncio.AbstractEventLoop] = VirtualTimeLoop
    limit = None
    marker = item.get_closest_marker("real_time")
    if marker or REAL_TIME_FIXTURES & set(item.fixturenames):
        factory = LeakCheckLoop
        limit = marker.kwargs.get("limit", REAL_TIME_LIMIT) if marker else REAL_TIME_LIMIT
    debug = item.get_closest_marker("plain_loop") is None
    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        runner.run(_run_test(test, arguments, limit))


async def _run_test(test: Callable[..., Awaitable[None]], arguments: dict[str, Any], limit: float | None) -> None:
    async with asyncio.timeout(limit), AsyncExitStack() as entered:
        for argument in arguments.values():
            if getattr(argument, "enter_for_test", False):
                await entered.enter_async_context(argument)
        await test(**arguments)
    for _ in range(10):  # lets tasks and connections end that the test has cancelled or closed
        await asyncio.sleep(0)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks and limit is not None:
        _, tasks = await asyncio.wait(tasks, timeout=TASK_TIMEOUT)
    assert not tasks, f"tasks left running: {sorted(str(task.get_coro()) for task in tasks)}"
    await assert_all_closed()
