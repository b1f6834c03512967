"""A pytest plugin for tests that are coroutines: `pytest_plugins = ["konverge.testing.async_tests"]`.

Rules:

1. An `async def test_...` runs in virtual time. A test that is marked `real_time`, or uses the real control plane,
   runs on an ordinary loop.
2. asyncio's debug mode is on, which makes everything about three times as slow. A test that is long or measures
   time can disable it: `@pytest.mark.plain_loop`.
3. A task that is still running when its test ends fails the test; so does an open connection. In real time they have a
   few seconds to end by themselves: the peer of a closed connection needs that.
4. No test hangs: in virtual time a deadlock is an error at once; in real time a test has two minutes, or the limit in
   its marker: `@pytest.mark.real_time(limit=900)`.
5. An argument with the attribute `enter_for_test` is entered on the test's loop before the test starts (see
   `clusters`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed
from konverge.testing.virtual_time import VirtualTimeLoop

REAL_TIME_FIXTURES = {"control_plane"}
REAL_TIME_LIMIT = 120.0
TASK_TIMEOUT = 5.0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_time: an async test that needs real time, for sockets or processes")
    config.addinivalue_line(
        "markers", "plain_loop: an async test that is too long, or too exact, for asyncio's debug mode"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; leave all others to pytest."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    factory: Callable[[], asyncio.AbstractEventLoop] = VirtualTimeLoop
    limit = None
    marker = pyfuncitem.get_closest_marker("real_time")
    if marker or REAL_TIME_FIXTURES & set(pyfuncitem.fixturenames):
        factory = LeakCheckLoop
        limit = marker.kwargs.get("limit", REAL_TIME_LIMIT) if marker else REAL_TIME_LIMIT
    debug = pyfuncitem.get_closest_marker("plain_loop") is None
    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        runner.run(_run_test(test, arguments, limit))
    return True


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
