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
   `konverge_cluster.testing`).
6. Other plugins for coroutines (pytest-asyncio, anyio) leave these tests alone, whatever their mode: what they would
   call has been replaced by a plain function before they look at it.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from konverge.testing import coroutine_tests


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, also for a project that does not list them."""
    coroutine_tests.register_markers(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Remember a test that is a coroutine."""
    coroutine_tests.store_coroutine(item)
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that is a coroutine; leave all others to pytest."""
    coroutine_tests.replace_coroutine(pyfuncitem)
    return (yield)
