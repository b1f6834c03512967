"""A test that leaves a connection open fails at its own end, with the name of the connection."""

from __future__ import annotations

import asyncio
import socket

import pytest

from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed


def test_a_listener_and_a_connection_that_are_left_open_are_named() -> None:
    async def leave() -> tuple[list[str], int]:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await accepted
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeakCheckLoop)
        left = await loop.open_resources()
        server.close()
        writer.transport.abort()
        accepted.result().transport.abort()
        return left, port

    with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
        left, port = runner.run(leave())
        runner.run(assert_all_closed())

    assert f"127.0.0.1:{port} to no peer" in left
    assert any(each.endswith(f" to 127.0.0.1:{port}") for each in left)


def test_a_connection_that_is_no_longer_read_is_found() -> None:
    async def leave() -> list[str]:
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)
        theirs.close()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeakCheckLoop)
        left = await loop.open_resources(timeout=0.05)
        writer.transport.abort()
        return left

    with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
        assert len(runner.run(leave())) == 1
        runner.run(assert_all_closed())


def test_a_loop_without_open_resources_is_empty() -> None:
    with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
        runner.run(assert_all_closed())


def test_a_goodbye_that_takes_a_moment_is_waited_for() -> None:
    async def close_late() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            _, writer = await asyncio.open_connection(sock=ours)
            asyncio.get_running_loop().call_later(0.02, writer.transport.abort)
            await assert_all_closed()
        assert writer.transport.is_closing()

    with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
        runner.run(close_late())


def test_a_test_that_leaves_a_listener_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import asyncio
        import pytest

        @pytest.mark.real_time
        async def test_leaves():
            await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        """)
    outcome = pytester.runpytest_subprocess(
        "-p", "konverge.testing.async_tests", "-p", "no:cacheprovider", "-W", "ignore"
    )
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*left open: 127.0.0.1:* to no peer*"])
