"""TCP forwarding: what passes, what ends, and what blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from konverge_cluster.processes.forwarders import Address, Connection, Forwarder, listening_socket

pytestmark = pytest.mark.real_time

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
        writer.write(b"end")
    except ConnectionError:
        pass
    finally:
        writer.close()


class Block:
    """Whether connections are blocked."""

    def __init__(self) -> None:
        self.active = False

    def __call__(self, _: Connection) -> bool:
        return self.active


@asynccontextmanager
async def forwarding(handler: Handler = echo, blocked: Block | None = None) -> AsyncGenerator[Forwarder]:
    """Run a backend and a forwarder to it."""
    async with asyncio.TaskGroup() as handlers:

        def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            handlers.create_task(_run(handler, reader, writer))

        backend = await asyncio.start_server(handle, sock=listening_socket("127.0.0.1", 0))
        address: Address = backend.sockets[0].getsockname()
        forwarder = Forwarder(lambda: address, is_blocked=blocked or Block())
        forwarder.start(listening_socket("127.0.0.1", 0))
        try:
            yield forwarder
        finally:
            forwarder.abort()
            backend.close()


async def _run(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await handler(reader, writer)


async def test_the_end_of_one_direction_leaves_the_other_open() -> None:
    async with forwarding() as forwarder:
        reader, writer = await asyncio.open_connection(*forwarder.address)
        writer.write(b"hello ")
        writer.write_eof()

        assert await reader.read() == b"hello end"
        writer.close()


async def test_a_large_body_arrives_complete() -> None:
    body = bytes(range(256)) * 40_000
    async with forwarding() as forwarder:
        reader, writer = await asyncio.open_connection(*forwarder.address)

        async def send() -> None:
            writer.write(body)
            await writer.drain()
            writer.write_eof()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            received = await reader.read()

        assert received == body + b"end"
        writer.close()


async def test_a_slow_reader_slows_the_writer_down() -> None:
    sent: list[int] = []

    async def send_for_ever(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                sent.append(65536)
                writer.write(b"x" * 65536)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with forwarding(send_for_ever) as forwarder:
        _, writer = await asyncio.open_connection(*forwarder.address, limit=1024)
        last = -1
        async with asyncio.timeout(30):
            while last != len(sent):
                last = len(sent)
                await asyncio.sleep(0.3)

        assert sum(sent) < 64 * 1024 * 1024
        writer.transport.abort()


async def test_a_backend_that_refuses_resets_the_connection() -> None:
    with listening_socket("127.0.0.1", 0) as closed:
        address = closed.getsockname()
    forwarder = Forwarder(lambda: address)
    forwarder.start(listening_socket("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection(*forwarder.address)

    with pytest.raises(ConnectionResetError):
        await reader.read()

    writer.close()
    forwarder.abort()
    assert not forwarder.connections


async def test_connections_continue_after_close_and_end_with_abort() -> None:
    async with forwarding() as forwarder:
        reader, writer = await asyncio.open_connection(*forwarder.address)
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"

        forwarder.close()

        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*forwarder.address)
        writer.write(b"b")
        assert await reader.readexactly(1) == b"b"
        forwarder.abort()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert not forwarder.connections


async def test_a_cut_stops_bytes_and_refuses_nothing() -> None:
    blocked = Block()
    async with forwarding(blocked=blocked) as forwarder:
        old_reader, old_writer = await asyncio.open_connection(*forwarder.address)
        old_writer.write(b"a")
        assert await old_reader.readexactly(1) == b"a"

        blocked.active = True
        forwarder.refresh()
        new_reader, new_writer = await asyncio.open_connection(*forwarder.address)
        for writer in (old_writer, new_writer):
            writer.write(b"b")
        for reader in (old_reader, new_reader):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await reader.readexactly(1)

        blocked.active = False
        forwarder.refresh()
        for reader in (old_reader, new_reader):
            assert await reader.readexactly(1) == b"b"
        for writer in (old_writer, new_writer):
            writer.close()
