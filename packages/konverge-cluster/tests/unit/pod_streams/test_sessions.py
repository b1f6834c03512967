"""The streams of a process behind a WebSocket, with a process of the test and a client of the test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence

import pytest

from konverge.errors import TransportError
from konverge.wire.channels import Channel, exit_code, pack_message
from konverge_cluster.pod_streams.sessions import (
    Streams,
    exit_status,
    receive_messages,
    send_status,
    serve_until,
)

pytestmark = pytest.mark.real_time

LIMIT = 30.0


class Client:
    """The server's side of a WebSocket whose client is the test."""

    protocol = "v5.channel.k8s.io"

    def __init__(self, *messages: bytes, slow: bool = False) -> None:
        self._received: dict[Channel, bytearray] = {}
        self.closed = asyncio.Event()
        self.reads = asyncio.Event()
        if not slow:
            self.reads.set()
        self._messages = deque(messages)

    async def send(self, message: bytes) -> None:
        await self.reads.wait()
        if self.closed.is_set():
            raise TransportError("the client has closed the connection")
        channel = Channel(message[0])
        self._received.setdefault(channel, bytearray()).extend(message[1:])

    async def receive(self) -> bytes | None:
        if self._messages:
            return self._messages.popleft()
        await self.closed.wait()
        return None

    async def close(self) -> None:
        self.closed.set()

    @property
    def received(self) -> dict[Channel, bytes]:
        return {channel: bytes(content) for channel, content in self._received.items()}

    @property
    def stdout(self) -> bytes:
        return self.received.get(Channel.STDOUT, b"")


def stdin(content: bytes) -> bytes:
    return pack_message(Channel.STDIN, content)


END = pack_message(Channel.CLOSE, bytes((Channel.STDIN,)))


async def run(
    client: Client, command: Sequence[str], *, tty: bool = False, started: asyncio.Event | None = None
) -> subprocess.Popen[bytes]:
    """Run a command for a client, as an exec request does."""
    streams = Streams(stdin=True, stdout=True, stderr=True, tty=tty)
    process = subprocess.Popen(  # noqa: ASYNC220 - as the supervisor, it is not the loop's child
        command,
        stdin=streams.descriptors[0],
        stdout=streams.descriptors[1],
        stderr=streams.descriptors[2],
        start_new_session=True,
    )
    streams.close_descriptors()
    if started is not None:
        started.set()

    async def work() -> None:
        await asyncio.gather(*(streams.copy(channel, client) for channel in streams.outputs))
        code = await asyncio.to_thread(process.wait)
        await send_status(client, exit_status(code))

    try:
        async with asyncio.timeout(LIMIT):
            await serve_until(work(), receive_messages(client, streams))
    finally:
        streams.close()
        process.kill()
        process.wait()
    return process


async def test_the_streams_are_separate() -> None:
    client = Client(stdin("grün\n".encode()), END)
    await run(client, ["sh", "-c", "cat; echo error >&2; exit 3"])
    assert client.stdout.decode() == "grün\n"
    assert client.received[Channel.STDERR] == b"error\n"
    assert exit_code(client.received[Channel.ERROR]) == 3


async def test_a_terminal_has_one_stream_a_size_and_an_end() -> None:
    size = pack_message(Channel.RESIZE, b'{"Width":101,"Height":33}')
    client = Client(size, stdin(b"stty size; exit 4\n"))
    await run(client, ["sh", "-i"], tty=True)
    assert b"33 101" in client.stdout
    assert Channel.STDERR not in client.received
    assert exit_code(client.received[Channel.ERROR]) == 4


async def test_the_end_of_the_input_ends_a_program_in_a_terminal() -> None:
    client = Client(stdin(b"line\n"), END)
    await run(client, ["cat"], tty=True)
    assert client.stdout.count(b"line\r\n") == 2  # echoed, and copied
    assert exit_code(client.received[Channel.ERROR]) == 0


async def test_much_output_arrives_complete() -> None:
    client = Client()
    await run(client, [sys.executable, "-c", "import os\nfor i in range(2000): os.write(1, b'%06d' % i * 2000)"])
    assert client.stdout == b"".join(b"%06d" % number * 2000 for number in range(2000))


async def test_a_client_that_does_not_read_holds_up_the_process_and_nothing_is_buffered() -> None:
    client = Client(slow=True)
    started = asyncio.Event()
    running = asyncio.ensure_future(run(client, ["head", "-c", "5000000", "/dev/zero"], started=started))
    await started.wait()
    await asyncio.sleep(0.2)
    assert not running.done()
    client.reads.set()
    await running
    assert len(client.stdout) == 5_000_000


async def test_a_process_that_does_not_read_holds_up_the_client() -> None:
    client = Client(*(stdin(b"x" * 65536) for _ in range(100)), END)
    await run(client, ["sh", "-c", "sleep 0.2; head -c 10 | wc -c"])
    assert client.stdout.strip() == b"10"


async def test_a_client_that_disconnects_ends_the_session() -> None:
    client = Client()
    started = asyncio.Event()
    running = asyncio.ensure_future(run(client, ["sleep", "60"], started=started))
    await started.wait()
    await client.close()
    process = await running
    assert process.returncode != 0
    assert Channel.ERROR not in client.received


async def test_a_client_that_is_cut_while_it_receives_ends_the_session() -> None:
    client = Client()
    started = asyncio.Event()
    running = asyncio.ensure_future(run(client, ["yes"], started=started))
    await started.wait()
    async with asyncio.timeout(LIMIT):
        while not client.stdout:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await client.close()
    await running


@pytest.mark.parametrize("message", [b"", b"\x09x"])
async def test_a_message_on_no_channel_ends_the_session(message: bytes) -> None:
    client = Client(message)
    await run(client, ["sleep", "60"])
    assert Channel.ERROR not in client.received


@pytest.mark.parametrize(
    "size", [b"", b"[]", b"{}", b'{"Width":-1,"Height":1}', b'{"Width":70000,"Height":1}', b'{"Width":"x","Height":1}']
)
async def test_a_size_that_is_none_changes_nothing(size: bytes) -> None:
    client = Client(pack_message(Channel.RESIZE, size), stdin(b"exit 0\n"))
    await run(client, ["sh"], tty=True)
    assert exit_code(client.received[Channel.ERROR]) == 0


async def test_no_descriptor_is_left() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for tty in (True, False):
        await run(Client(END), ["true"], tty=tty)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_status_is_that_of_a_kubelet() -> None:
    assert exit_status(0) == {"metadata": {}, "status": "Success"}
    assert json.dumps(exit_status(137)).count("137") == 2
    failed = exit_status(128, 'exec: "nope": executable file not found in $PATH')
    assert failed["message"].startswith("Internal error occurred: error executing command in container: exec:")
    assert failed["code"] == 500
