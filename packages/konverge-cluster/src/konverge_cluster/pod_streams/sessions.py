"""A process behind the channels of a WebSocket: its streams, its terminal, its end."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from konverge.errors import DecodeError, TransportError
from konverge.wire.channels import Channel, pack_message, unpack_message
from konverge.wire.messages import WebSocket
from konverge_cluster.api.status_errors import StatusError, internal_error

__all__ = ["ContainerInput", "Streams", "exit_status", "receive_messages", "send_status", "serve_until"]

_READ_BYTES: Final = 32768
_END_OF_TRANSMISSION: Final = b"\x04"
_MAX_SIZE: Final = 65535


class Streams:
    """The streams of a process: pipes, or a terminal.

    `descriptors` are the three for the process. What the process or the client does not read is not buffered here.
    """

    def __init__(self, *, stdin: bool, stdout: bool, stderr: bool, tty: bool) -> None:
        self._opened: set[int] = set()
        self._stdin: int | None = None
        self.outputs: dict[Channel, int] = {}
        self.tty = tty
        self.descriptors = self._open_terminal() if tty else self._open_pipes(stdin=stdin, stdout=stdout, stderr=stderr)
        for one in {*self.outputs.values(), *(() if self._stdin is None else (self._stdin,))}:
            os.set_blocking(one, False)

    def _open_terminal(self) -> Sequence[int]:
        own, other = os.openpty()
        self._opened |= {own, other}
        self._stdin = own
        self.outputs[Channel.STDOUT] = own
        return (other, other, other)

    def _open_pipes(self, *, stdin: bool, stdout: bool, stderr: bool) -> Sequence[int]:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._opened.add(nothing)
        descriptors = [nothing, nothing, nothing]
        if stdin:
            descriptors[0], self._stdin = self._pipe()
        for channel, wanted in ((Channel.STDOUT, stdout), (Channel.STDERR, stderr)):
            if wanted:
                self.outputs[channel], descriptors[channel] = self._pipe()
        return descriptors

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        self._opened |= {*ends}
        return ends

    def close_descriptors(self) -> None:
        """Close the descriptors of the process here, so that its end is seen."""
        for one in {*self.descriptors} & self._opened:
            self._close(one)

    def close(self) -> None:
        """Close everything; safe to call twice."""
        for one in tuple(self._opened):
            self._close(one)
        self._stdin = None

    def _close(self, descriptor: int) -> None:
        self._opened.discard(descriptor)
        os.close(descriptor)

    async def write(self, content: bytes) -> None:
        """Write to the standard input; wait while the process does not read. What nobody reads is dropped."""
        if self._stdin is not None:
            await _write(self._stdin, content)

    async def end_input(self) -> None:
        """Close the standard input; a terminal gets an end of transmission instead."""
        if self.tty:
            await self.write(_END_OF_TRANSMISSION)
        elif self._stdin is not None:
            self._close(self._stdin)
            self._stdin = None

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal; without one nothing happens."""
        if self.tty and self._stdin is not None:
            fcntl.ioctl(self._stdin, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def copy(self, channel: Channel, websocket: WebSocket) -> None:
        """Send what the process writes to a stream, until its end; wait while the client does not read."""
        with suppress(TransportError):  # the client is gone, and its end of the connection is seen elsewhere
            while content := await _read(self.outputs[channel]):
                await websocket.send(pack_message(channel, content))
                await asyncio.sleep(0)  # a process that writes faster than this reads must not block the event loop


class ContainerInput:
    """The standard input of a container, for one client. `detach` decides whether it stays open for others."""

    def __init__(self, descriptor: int, detach: Callable[[], None]) -> None:
        self._descriptor: int | None = os.dup(descriptor)
        self._detach = detach
        os.set_blocking(self._descriptor, False)

    async def write(self, content: bytes) -> None:
        """Write to it; wait while the container does not read."""
        if self._descriptor is not None:
            await _write(self._descriptor, content)

    async def end_input(self) -> None:
        """Detach the client."""
        self.close()

    def resize(self, columns: int, rows: int) -> None:
        """Do nothing: there is no terminal."""

    def close(self) -> None:
        """Detach the client; safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._detach()


async def _write(descriptor: int, content: bytes) -> None:
    """Write everything, unless nobody reads any more."""
    loop, rest = asyncio.get_running_loop(), memoryview(content)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await _wait(loop.add_writer, loop.remove_writer, descriptor)
        except OSError:
            return


async def _read(descriptor: int) -> bytes:
    """Return what can be read, b"" at the end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            await _wait(loop.add_reader, loop.remove_reader, descriptor)
        except OSError:  # the other side of a terminal is closed
            return b""


async def _wait(add: Callable[..., None], remove: Callable[[int], bool], descriptor: int) -> None:
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)


@dataclass(frozen=True)
class _Size:
    columns: int
    rows: int


async def receive_messages(websocket: WebSocket, streams: Streams | ContainerInput | None) -> None:
    """Pass the messages of a client to a process, until the client closes the connection; None drops them.

    A message that cannot be decoded ends it too.
    """
    with suppress(TransportError, DecodeError):
        while (message := await websocket.receive()) is not None:
            channel, content = unpack_message(message)
            if streams is None:
                continue
            if channel is Channel.STDIN:
                await streams.write(content)
            elif channel is Channel.CLOSE and content == bytes((Channel.STDIN,)):
                await streams.end_input()
            elif channel is Channel.RESIZE and (size := _read_size(content)) is not None:
                streams.resize(size.columns, size.rows)


def _read_size(content: bytes) -> _Size | None:
    try:
        document: Any = msgspec.json.decode(content)
        columns, rows = int(document["Width"]), int(document["Height"])
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, ValueError):
        return None
    return _Size(columns, rows) if 0 <= columns <= _MAX_SIZE and 0 <= rows <= _MAX_SIZE else None


async def serve_until(work: Awaitable[None], disconnected: Awaitable[None]) -> None:
    """Do the work, until it is done or the client has disconnected."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(disconnected)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, TransportError):
            raise result


async def send_status(websocket: WebSocket, status: dict[str, Any]) -> None:
    """Send the last message, a Status without its kind; a client that is gone does not need it."""
    status = {name: value for name, value in status.items() if name not in ("kind", "apiVersion")}
    with suppress(TransportError):
        await websocket.send(pack_message(Channel.ERROR, msgspec.json.encode(status)))


def exit_status(code: int, error: str = "") -> dict[str, Any]:
    """Return the Status of a command that has ended, or that could not be started."""
    if error:
        failed: StatusError = internal_error(f"error executing command in container: {error}")
        return failed.status
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
