"""A client of one server in RESP2, the protocol of Redis and Valkey.

It is our own because redis-py's commands are untyped, and its retries, pools and cluster cache would hide what the
operator has to observe: which server replied, and with what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeAlias

__all__ = ["Connection", "Reply", "ServerError", "Word"]

Word: TypeAlias = str | int | bytes
Reply: TypeAlias = bytes | int | list["Reply"] | None


class ServerError(Exception):
    """The server refused a command; `code` is the first word of its reply, such as NOAUTH or MOVED."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = message.partition(" ")[0]


class Connection:
    """A connection to one server, opened by the first command. Commands are sent one after the other.

    A command raises ServerError when the server refuses it, OSError (TimeoutError too) when the server cannot be
    reached or does not reply in time. After an OSError the next command opens a new connection.
    """

    def __init__(self, host: str, port: int, password: str = "", *, timeout: float = 5.0) -> None:
        self.host, self.port = host, port
        self._password = password
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call(self, *words: Word) -> Reply:
        """Send one command and return the reply."""
        return (await self.call_all([words]))[0]

    async def call_all(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send commands at once and return the replies. If one is refused the others still have their effect."""
        async with self._lock:
            try:
                async with asyncio.timeout(self._timeout):
                    reader, writer = self._streams or await self._open()
                    return await _exchange(reader, writer, commands)
            except ServerError:
                raise
            except EOFError as error:
                await self.close()
                raise ConnectionResetError(f"{self.host}:{self.port} closed the connection") from error
            except BaseException:  # a reply that is still under way belongs to no later command
                await self.close()
                raise

    async def close(self) -> None:
        """Close the connection."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()
            with suppress(OSError):
                await streams[1].wait_closed()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams = await asyncio.open_connection(self.host, self.port)
        self._streams = streams
        if self._password:
            await _exchange(*streams, [("AUTH", self._password)])
        return streams


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, commands: Sequence[Sequence[Word]]
) -> list[Reply]:
    writer.write(b"".join(map(_encode, commands)))
    await writer.drain()
    replies = [await _read(reader) for _ in commands]
    for reply in replies:
        if isinstance(reply, ServerError):
            raise reply
    return [reply for reply in replies if not isinstance(reply, ServerError)]


def _encode(words: Sequence[Word]) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


async def _read(reader: asyncio.StreamReader) -> Reply | ServerError:
    line = (await reader.readuntil(b"\r\n"))[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest
    if kind == b"-":
        return ServerError(rest.decode(errors="replace"))
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return (await reader.readexactly(int(rest) + 2))[:-2] if rest != b"-1" else None
    if kind == b"*":
        return await _read_items(reader, int(rest)) if rest != b"-1" else None
    raise ConnectionError(f"not a reply of a Redis server: {line[:40]!r}")


async def _read_items(reader: asyncio.StreamReader, count: int) -> list[Reply]:
    """Read the items of an array; an error among them is its message."""
    found = [await _read(reader) for _ in range(count)]
    return [str(item).encode() if isinstance(item, ServerError) else item for item in found]
