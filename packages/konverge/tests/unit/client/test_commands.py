"""`Client.exec` on a server of the test, on virtual time: what the server sends, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client, ExecResult, InProcessTransport
from konverge.errors import DecodeError, Forbidden, ServerError, TransportError, WriteRefused
from konverge.wire import BufferedResponse, Channel, Request, Response, WebSocket, pack_message

SUCCESS = b'{"metadata":{},"status":"Success"}'
FAILED = (
    b'{"metadata":{},"status":"Failure","reason":"NonZeroExitCode",'
    b'"details":{"causes":[{"reason":"ExitCode","message":"7"}]}}'
)
NOT_FOUND = b'{"status":"Failure","reason":"InternalError","message":"container not found (\\"c\\")","code":500}'

Serve = Callable[[WebSocket], Awaitable[None]]


class Upgrade(BufferedResponse):
    """A response that upgrades the request, as the embedded server has it."""

    def __init__(self, serve: Serve, protocol: str = "v5.channel.k8s.io") -> None:
        super().__init__(101, headers={"sec-websocket-protocol": protocol})
        self.websocket = serve


class Server:
    """A server that upgrades every request."""

    def __init__(self, serve: Serve, protocol: str = "v5.channel.k8s.io") -> None:
        self.requests: list[Request] = []
        self._response = Upgrade(serve, protocol)

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        return self._response

    def client(self) -> Client:
        return Client(InProcessTransport(self.handle))


def sends(*messages: tuple[Channel, bytes]) -> Serve:
    async def serve(websocket: WebSocket) -> None:
        for channel, content in messages:
            await websocket.send(pack_message(channel, content))

    return serve


async def test_output_error_output_and_exit_code_come_back() -> None:
    output = ((Channel.STDOUT, "grün ".encode()), (Channel.STDERR, b"\xff\x00"), (Channel.STDOUT, "✓".encode()))
    server = Server(sends(*output, (Channel.ERROR, FAILED)))
    result = await server.client().exec("web", ["sh", "-c", "date; exit 7"], container="c")
    assert result == ExecResult("grün ✓".encode(), b"\xff\x00", 7)
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/api/v1/namespaces/default/pods/web/exec")
    words = [("command", "sh"), ("command", "-c"), ("command", "date; exit 7")]
    assert list(request.query) == [("container", "c"), ("stdout", "true"), ("stderr", "true"), *words]
    assert request.headers["sec-websocket-protocol"] == "v5.channel.k8s.io, v4.channel.k8s.io"


async def test_the_input_is_sent_and_closed() -> None:
    async def serve(websocket: WebSocket) -> None:
        received = b""
        while (message := await websocket.receive()) != b"\xff\x00":
            assert message is not None
            assert message[0] == Channel.STDIN
            received += message[1:]
        await websocket.send(pack_message(Channel.STDOUT, received))
        await websocket.send(pack_message(Channel.ERROR, SUCCESS))

    server = Server(serve)
    content = bytes(range(256)) * 4096
    assert await server.client().exec("web", ["cat"], stdin=content) == ExecResult(content, b"", 0)
    assert server.requests[0].headers["sec-websocket-protocol"] == "v5.channel.k8s.io"
    assert ("stdin", "true") in server.requests[0].query


async def test_an_empty_input_is_closed_too() -> None:
    async def serve(websocket: WebSocket) -> None:
        assert await websocket.receive() == b"\xff\x00"
        await websocket.send(pack_message(Channel.ERROR, SUCCESS))

    assert (await Server(serve).client().exec("web", ["cat"], stdin=b"")).exit_code == 0


async def test_a_command_may_end_before_it_has_read_its_input() -> None:
    server = Server(sends((Channel.ERROR, FAILED)))
    assert (await server.client().exec("web", ["false"], stdin=b"x" * 10_000_000)).exit_code == 7


async def test_a_slow_reader_holds_up_the_server() -> None:
    sent = 0

    async def serve(websocket: WebSocket) -> None:
        nonlocal sent
        for _ in range(1000):
            await websocket.send(pack_message(Channel.STDOUT, b"x"))
            sent += 1

    transport = InProcessTransport(Server(serve).handle)
    websocket = await transport.open_websocket(Request("GET", "/"), ("v5.channel.k8s.io",))
    assert isinstance(websocket, WebSocket)
    await asyncio.sleep(60)
    assert sent < 20
    await websocket.close()


async def test_too_much_output_is_refused() -> None:
    async def serve(websocket: WebSocket) -> None:
        while True:
            await websocket.send(pack_message(Channel.STDOUT, b"x" * 1000))

    with pytest.raises(DecodeError, match=r"exec in Pod default/web: the output is longer than 5000 bytes"):
        await Server(serve).client().exec("web", ["yes"], output_limit=5000)


async def test_a_connection_that_ends_before_the_command_is_an_error() -> None:
    server = Server(sends((Channel.STDOUT, b"half")))
    with pytest.raises(TransportError, match=r"exec in Pod default/web: the connection was closed before"):
        await server.client().exec("web", ["date"])
    assert len(server.requests) == 1


async def test_a_command_that_takes_too_long_is_ended() -> None:
    closed = False

    async def serve(websocket: WebSocket) -> None:
        nonlocal closed
        try:
            await websocket.receive()
        finally:
            closed = True

    with pytest.raises(TransportError, match=r"not done within 5 s"):
        await Server(serve).client().using(timeout=5).exec("web", ["sleep", "60"])
    assert closed
    assert asyncio.get_running_loop().time() == 5


async def test_a_command_that_cannot_be_started_is_an_error() -> None:
    with pytest.raises(ServerError, match=r"exec in Pod default/web: container not found"):
        await Server(sends((Channel.ERROR, NOT_FOUND))).client().exec("web", ["date"])


async def test_a_refused_upgrade_is_the_error_of_its_status() -> None:
    async def handle(_: Request) -> Response:
        return BufferedResponse(403, b'{"kind":"Status","message":"no","reason":"Forbidden","code":403}')

    with pytest.raises(Forbidden, match=r"exec in Pod default/web: no"):
        await Client(InProcessTransport(handle)).exec("web", ["date"])


async def test_a_server_that_does_not_upgrade_is_an_error() -> None:
    async def handle(_: Request) -> Response:
        return BufferedResponse(200, b"hello")

    with pytest.raises(TransportError, match=r"the server did not upgrade"):
        await Client(InProcessTransport(handle)).exec("web", ["date"])


async def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(TransportError, match=r"does not support v5"):
        await Server(sends(), protocol="v9").client().exec("web", ["date"])


async def test_it_counts_as_a_write() -> None:
    server = Server(sends((Channel.ERROR, SUCCESS)))
    with pytest.raises(WriteRefused):
        await server.client().with_write_guard(lambda: 0).exec("web", ["date"])
    assert server.requests == []


async def test_it_ends_when_the_write_guard_does_not_allow_more() -> None:
    async def serve(websocket: WebSocket) -> None:
        await websocket.receive()

    with pytest.raises(TransportError, match=r"not done within 3 s"):
        await Server(serve).client().with_write_guard(lambda: 3).exec("web", ["sleep", "60"])
    assert asyncio.get_running_loop().time() == 3


@pytest.mark.parametrize("command", ["date", [], ""])
async def test_a_command_is_a_list_of_words(command: list[str]) -> None:
    with pytest.raises(TypeError, match=r"expected a list of words"):
        await Server(sends()).client().exec("web", command)


async def test_a_transport_without_websockets_is_named() -> None:
    class Plain:
        async def send(self, request: Request) -> Response:
            raise AssertionError(request)

        async def close(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"Plain cannot open WebSockets"):
        await Client(Plain()).exec("web", ["date"])
