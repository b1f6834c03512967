"""Port-forward for a client in memory to servers on real sockets; `tests/processes/test_kubectl.py` runs kubectl."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from konverge.errors import DecodeError
from konverge_cluster.pod_streams.port_forwards import PortForwards
from konverge_cluster.pod_streams.spdy_frames import (
    DICTIONARY,
    Frame,
    FrameReader,
    FrameWriter,
    NewStream,
    Ping,
    StreamData,
    StreamReset,
)

pytestmark = pytest.mark.real_time

REPLY, RESET, PING = 2, 3, 6
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def control(kind: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, len(payload)) + payload


class Client:
    """A client in memory, which is the WebSocket of the server too."""

    protocol = "SPDY/3.1+portforward.k8s.io"

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)
        self._to_server = asyncio.Queue[bytes | None]()
        self._from_server = asyncio.Queue[bytes]()

    # What the server calls

    async def send(self, message: bytes) -> None:
        await self._from_server.put(message)

    async def receive(self) -> bytes | None:
        return await self._to_server.get()

    async def close(self) -> None:
        pass

    # What a test calls

    def opening(self, stream: int, **headers: str) -> bytes:
        texts = [text for pair in headers.items() for text in pair]
        block = struct.pack(">I", len(headers)) + b"".join(struct.pack(">I", len(x)) + x.encode() for x in texts)
        packed = self._headers.compress(block) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack(">IIH", stream, 0, 0) + packed)

    def write(self, *messages: bytes) -> None:
        for one in messages:
            self._to_server.put_nowait(one)

    def connect(self, port: int, *, first: int = 1, request: str = "0") -> None:
        """Open the two streams of a connection."""
        both = {"port": str(port), "requestid": request}
        self.write(self.opening(first, streamtype="error", **both), data(first, b"", last=True))
        self.write(self.opening(first + 2, streamtype="data", **both))

    def disconnect(self) -> None:
        self._to_server.put_nowait(None)

    async def read(self) -> tuple[str, int, bytes]:
        """Return the kind, the stream and the content of the next frame of the server."""
        async with asyncio.timeout(30):
            message = await self._from_server.get()
        first, second, third = struct.unpack_from(">HHI", message)
        if not first & 0x8000:
            return "last" if third >> 24 else "data", second, message[8:]
        (stream,) = struct.unpack_from(">I", message, 8)
        return {REPLY: "reply", RESET: "reset", PING: "ping"}[second], stream, b""

    async def read_all(self, count: int) -> list[tuple[str, int, bytes]]:
        return [await self.read() for _ in range(count)]


def data(stream: int, content: bytes, *, last: bool = False) -> bytes:
    return FrameWriter().data(stream, content, last=last)


@asynccontextmanager
async def listening(serve: Serve) -> AsyncGenerator[int]:
    """Serve each connection with a function; wait until all of them are closed."""
    tasks = set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(handle(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks)


@asynccontextmanager
async def serving(client: Client) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(PortForwards("127.0.0.1", "web").serve(client))
    try:
        yield
    finally:
        client.disconnect()
        async with asyncio.timeout(30):
            await task


async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer everything in capitals when the client has ended."""
    writer.write((await reader.read()).upper())


async def test_a_connection_carries_bytes_in_both_directions_and_ends() -> None:
    client = Client()
    async with listening(upper) as port, serving(client):
        client.connect(port)
        client.write(data(3, b"he"), data(3, b"llo"), data(3, b"", last=True))

        assert await client.read_all(2) == [("reply", 1, b""), ("reply", 3, b"")]
        assert await client.read_all(3) == [("data", 3, b"HELLO"), ("last", 1, b""), ("last", 3, b"")]


async def test_frames_may_be_cut_anywhere() -> None:
    client = Client()
    async with listening(upper) as port, serving(client):
        both = {"port": str(port), "requestid": "0"}
        opened = client.opening(1, streamtype="error", **both) + client.opening(3, streamtype="data", **both)
        client.write(*(bytes((one,)) for one in opened + data(3, b"cut", last=True)))

        assert (await client.read_all(3))[2] == ("data", 3, b"CUT")


async def test_connections_are_independent() -> None:
    client = Client()
    async with listening(upper) as port, serving(client):
        client.connect(port)
        client.connect(port, first=5, request="1")
        client.write(data(7, b"second", last=True))

        frames = await client.read_all(7)
        assert ("data", 7, b"SECOND") in frames
        client.write(data(3, b"first", last=True))
        assert (await client.read()) == ("data", 3, b"FIRST")


async def test_a_refused_connection_is_an_error_on_its_stream() -> None:
    client = Client()
    async with listening(upper) as port:
        pass
    async with serving(client):
        client.connect(port)

        *_, error, end = await client.read_all(4)
        assert error[:2] == ("last", 1)
        assert error[2].startswith(f"error forwarding port {port} to pod web: ".encode())
        assert end == ("last", 3, b"")


@pytest.mark.parametrize("how", ["reset", "disconnect"])
async def test_an_abandoned_connection_is_closed(how: str) -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()
        closed.set()

    client = Client()
    async with listening(wait) as port, serving(client):
        client.connect(port)
        assert (await client.read_all(3))[2] == ("data", 3, b"hello")
        if how == "reset":
            client.write(control(RESET, struct.pack(">II", 3, 5)))
        else:
            client.disconnect()
        async with asyncio.timeout(30):
            await closed.wait()


async def test_pings_are_answered_and_odd_streams_refused() -> None:
    client = Client()
    async with serving(client):
        client.write(control(PING, struct.pack(">I", 7)), control(4, bytes(12)), data(99, b"nobody"))
        client.write(client.opening(1, streamtype="data", port="1", requestid="0"))
        client.write(client.opening(3, streamtype="error", port="1", requestid="0"))
        client.write(client.opening(5, streamtype="data", port="x", requestid="0"))

        assert await client.read_all(4) == [("ping", 7, b""), ("reset", 1, b""), ("reply", 3, b""), ("reset", 5, b"")]


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        control(1, struct.pack(">IIH", 1, 0, 0) + b"not compressed"),
        control(PING, b""),
        struct.pack(">HHI", 0x8002, 1, 10) + bytes(10),
        struct.pack(">II", 1, 0xFFFFFF),
    ],
)
async def test_what_is_not_spdy_ends_the_connection(content: bytes) -> None:
    client = Client()
    client.write(content)

    async with asyncio.timeout(30):
        await PortForwards("127.0.0.1", "web").serve(client)

    with pytest.raises(DecodeError):
        list(FrameReader().feed(content))


def test_headers_that_grow_when_they_are_decompressed_are_refused() -> None:
    packer = zlib.compressobj(zdict=DICTIONARY)
    packed = packer.compress(bytes(10_000_000)) + packer.flush(zlib.Z_SYNC_FLUSH)

    with pytest.raises(DecodeError, match="too large"):
        list(FrameReader().feed(control(1, struct.pack(">IIH", 1, 0, 0) + packed)))


def test_frames_are_read() -> None:
    client = Client()
    written = client.opening(1, port="80") + data(1, b"x", last=True)
    written += control(RESET, struct.pack(">II", 1, 5)) + control(PING, struct.pack(">I", 4))
    expected: list[Frame] = [NewStream(1, {"port": "80"}), StreamData(1, b"x", last=True), StreamReset(1), Ping(4)]

    assert list(FrameReader().feed(written)) == expected


def test_the_dictionary_is_that_of_the_specification() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)
