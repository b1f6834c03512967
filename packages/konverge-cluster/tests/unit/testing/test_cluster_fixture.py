"""pytest finds the fixture `cluster` without wiring, and it works beside other plugins for coroutines."""

from __future__ import annotations

import ast
import inspect
import sys
from types import CodeType
from typing import Any

import pytest

from konverge.testing import run_in_virtual_time

TESTS = """
    import asyncio
    from konverge.k8s.core.v1 import ConfigMap
    from konverge import ObjectMeta

    async def test_the_cluster_runs_on_virtual_time(cluster):
        await cluster.client().create(ConfigMap(metadata=ObjectMeta(name="a")))
        await cluster.settle()
        await asyncio.sleep(30)
        assert (await cluster.client().get(ConfigMap, "a")).name == "a"
        assert asyncio.get_running_loop().time() > 30

    class TestMethods:
        async def test_a_method_too(self, cluster):
            await cluster.settle()
"""
OTHERS = """
    {marker}
    async def test_of_the_other_plugin():
        assert type(asyncio.get_running_loop()).__name__ != "VirtualTimeLoop"
"""


def run(pytester: pytest.Pytester, *options: str, marker: str = "", config: str = "", passed: int = 2) -> None:
    """Run the tests in a project without any wiring, for at most a minute."""
    pytester.makeini(f"[pytest]\naddopts = -p no:cacheprovider\n{config}")
    others = OTHERS.format(marker=marker) if passed > 2 else ""
    pytester.makepyfile(f"import pytest\n{inspect.cleandoc(TESTS)}\n\n\n{inspect.cleandoc(others)}\n")
    result = pytester.runpytest_subprocess("--strict-markers", "-W", "error", *options, timeout=60)
    result.assert_outcomes(passed=passed)


def test_without_wiring(pytester: pytest.Pytester) -> None:
    run(pytester, "-p", "no:asyncio", "-p", "no:anyio")


def test_with_the_plugins_named_as_before(pytester: pytest.Pytester) -> None:
    plugins = '["konverge_cluster.testing.fixtures", "konverge.testing.async_tests"]'
    pytester.makeconftest(f"pytest_plugins = {plugins}")
    run(pytester, "-p", "no:asyncio", "-p", "no:anyio")


def test_one_virtual_loop_for_all_coroutines_also_beside_pytest_asyncio(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest('pytest_plugins = ["konverge.testing.async_tests"]')
    pytester.makepyfile(
        """
        import asyncio

        async def test_without_a_cluster():
            await asyncio.sleep(86_400)
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60).assert_outcomes(passed=1)


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_beside_pytest_asyncio(pytester: pytest.Pytester, mode: str) -> None:
    """Its items replace the coroutine by a function of their own, on a loop on which the cluster was never entered."""
    config = f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function"
    run(pytester, "-p", "no:anyio", config=config, marker="@pytest.mark.asyncio", passed=3)


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_beside_anyio(pytester: pytest.Pytester, mode: str) -> None:
    pytester.makeconftest('import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n')
    run(pytester, "-p", "no:asyncio", config=f"anyio_mode = {mode}", marker="@pytest.mark.anyio", passed=3)


def test_beside_pytest_xdist(pytester: pytest.Pytester) -> None:
    run(pytester, "-p", "no:asyncio", "-p", "no:anyio", "-n", "2")


def test_the_plugin_imports_nothing_of_the_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_of_a_project_that_does_not_use_it():
            assert "konverge_cluster.testing.fixtures" in sys.modules
            loaded = [name for name in sys.modules if name.startswith(("konverge_cluster.", "konverge."))]
            assert not [name for name in loaded if ".testing" not in name]
        """
    )
    options = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:anyio")
    pytester.runpytest_subprocess(*options, timeout=60).assert_outcomes(passed=1)


CELLS = (
    """
    from konverge import ObjectMeta
    from konverge.k8s.core.v1 import ConfigMap
    from konverge.testing import run_in_virtual_time
    from konverge_cluster.testing import TestCluster
    """,
    """
    cluster = await TestCluster(nodes=1).__aenter__()
    client = cluster.client()
    """,
    """
    await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    found = (await client.get(ConfigMap, "a")).name
    await cluster.settle(quiet=0.2)
    """,
    """
    async def a_minute():
        async with TestCluster(nodes=1) as other:
            await other.settle(quiet=60)
            return "virtual"

    minute = run_in_virtual_time(a_minute())
    await cluster.__aexit__(None, None, None)
    """,
)


async def run_cell(source: str, names: dict[str, Any]) -> None:
    """Run a cell as a notebook does: with `await` at the top level, on the loop of the kernel."""
    code = compile(inspect.cleandoc(source), "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(code, CodeType)
    awaited = eval(code, names)  # a coroutine only when the cell has an `await`
    if inspect.isawaitable(awaited):
        await awaited


@pytest.mark.real_time
async def test_in_a_notebook() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in CELLS:
        await run_cell(cell, names)
    assert (names["found"], names["minute"]) == ("a", "virtual")


def test_without_a_running_loop_virtual_time_uses_no_thread() -> None:
    import threading

    async def thread() -> str:
        return threading.current_thread().name

    assert run_in_virtual_time(thread()) == threading.current_thread().name
    assert "ipykernel" not in sys.modules
