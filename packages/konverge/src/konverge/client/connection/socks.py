"""Through a SOCKS5 proxy (RFC 1928): `ssh -D` and bastions offer one.

The proxy is told the name of the server and looks it up itself, as Go programs do. Only the CONNECT command is spoken,
without credentials or with a user name and password (RFC 1929).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

__all__ = ["SocksError", "SocksProxy"]

_DEFAULT_PORT = 1080
_REPLIES = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "connection refused",
    6: "the time to live expired",
    7: "it does not know the command",
    8: "it does not know the kind of address",
}


class SocksError(OSError):
    """The proxy said no, or something that is not SOCKS5."""


@dataclass(frozen=True, slots=True)
class SocksProxy:
    """Where the proxy is and who we are to it; the password is never shown."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str) -> SocksProxy:
        """Read `socks5://user:password@host:port`."""
        parts = urlsplit(url)
        username, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.hostname or "", parts.port or _DEFAULT_PORT, username, password)

    async def open(self, host: str, port: int) -> socket.socket:
        """Open a connection to a server through the proxy.

        Raises: SocksError, or another OSError when the proxy cannot be reached.
        """
        link = await self._connect()
        try:
            await self._greet(link)
            await _ask(link, host, port)
        except BaseException:
            link.close()
            raise
        return link

    async def _connect(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for family, kind, protocol, _, address in found:
            link = socket.socket(family, kind, protocol)
            link.setblocking(False)
            try:
                await loop.sock_connect(link, address)
            except BaseException as error:
                link.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
            else:
                return link
        raise failure or SocksError("the proxy has no address")

    async def _greet(self, link: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(link, b"\x05\x02\x00\x02" if self.username else b"\x05\x01\x00")
        version, method = await _receive(link, 2)
        if version != 5:
            raise SocksError("it does not speak SOCKS5")
        if method == 2 and self.username:
            name, password = self.username.encode(), self.password.encode()
            await loop.sock_sendall(link, b"\x01" + _counted(name) + _counted(password))
            if (await _receive(link, 2))[1] != 0:
                raise SocksError("it does not accept the user name and password")
        elif method != 0:
            raise SocksError("it asks for credentials of another kind")


async def _ask(link: socket.socket, host: str, port: int) -> None:
    await asyncio.get_running_loop().sock_sendall(link, b"\x05\x01\x00" + _address(host) + port.to_bytes(2))
    version, reply, _, kind = await _receive(link, 4)
    if version != 5:
        raise SocksError("it does not speak SOCKS5")
    if reply != 0:
        raise SocksError(_REPLIES.get(reply, f"failure {reply}"))
    length = {1: 4, 4: 16}.get(kind) or (await _receive(link, 1))[0]
    await _receive(link, length + 2)


def _address(host: str) -> bytes:
    try:
        packed = ipaddress.ip_address(host).packed
    except ValueError:
        return b"\x03" + _counted(host.encode("idna"))
    return (b"\x01" if len(packed) == 4 else b"\x04") + packed


def _counted(text: bytes) -> bytes:
    if len(text) > 255:
        raise SocksError("a name or password is longer than 255 bytes")
    return len(text).to_bytes() + text


async def _receive(link: socket.socket, size: int) -> bytes:
    """Receive exactly so many bytes: not one more, since what follows belongs to TLS."""
    loop = asyncio.get_running_loop()
    received = b""
    while len(received) < size:
        piece = await loop.sock_recv(link, size - len(received))
        if not piece:
            raise SocksError("it closed the connection")
        received += piece
    return received
