"""Connections through a SOCKS5 proxy (RFC 1928), such as `ssh -D` or a bastion host.

The proxy resolves the host name of the server, as with Go programs. Only the CONNECT command is used, without
credentials or with a user name and password (RFC 1929).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from konverge.client.connection.sockets import WriteGuardSocket

__all__ = ["SocksError", "SocksProxy"]

_DEFAULT_PORT = 1080
_REPLIES = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class SocksError(OSError):
    """The proxy refused the connection, or its response is not SOCKS5."""


@dataclass(frozen=True, slots=True)
class SocksProxy:
    """The address of the proxy and the credentials for it; the repr does not show the password."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str) -> SocksProxy:
        """Parse `socks5://user:password@host:port`."""
        parts = urlsplit(url)
        username, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.hostname or "", parts.port or _DEFAULT_PORT, username, password)

    async def open(self, host: str, port: int) -> WriteGuardSocket:
        """Open a connection to a server through the proxy.

        Raises: SocksError, or another OSError when the proxy cannot be reached.
        """
        sock = await self._connect()
        try:
            await self._authenticate(sock)
            await _request_connection(sock, host, port)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _connect(self) -> WriteGuardSocket:
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for family, kind, protocol, _, address in addresses:
            sock = WriteGuardSocket(family, kind, protocol)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
            else:
                return sock
        raise failure or SocksError("the proxy has no address")

    async def _authenticate(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, b"\x05\x02\x00\x02" if self.username else b"\x05\x01\x00")
        version, method = await _receive(sock, 2)
        if version != 5:
            raise SocksError("its response is not SOCKS5")
        if method == 2 and self.username:
            name, password = self.username.encode(), self.password.encode()
            await loop.sock_sendall(sock, b"\x01" + _with_length(name) + _with_length(password))
            if (await _receive(sock, 2))[1] != 0:
                raise SocksError("it does not accept the user name and password")
        elif method != 0:
            raise SocksError("it requires another authentication method")


async def _request_connection(sock: socket.socket, host: str, port: int) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, b"\x05\x01\x00" + _address(host) + port.to_bytes(2))
    version, reply, _, kind = await _receive(sock, 4)
    if version != 5:
        raise SocksError("its response is not SOCKS5")
    if reply != 0:
        raise SocksError(_REPLIES.get(reply, f"failure {reply}"))
    length = {1: 4, 4: 16}.get(kind) or (await _receive(sock, 1))[0]
    await _receive(sock, length + 2)


def _address(host: str) -> bytes:
    try:
        packed = ipaddress.ip_address(host).packed
    except ValueError:
        return b"\x03" + _with_length(host.encode("idna"))
    return (b"\x01" if len(packed) == 4 else b"\x04") + packed


def _with_length(text: bytes) -> bytes:
    if len(text) > 255:
        raise SocksError("a name or password is longer than 255 bytes")
    return len(text).to_bytes() + text


async def _receive(sock: socket.socket, size: int) -> bytes:
    """Receive exactly `size` bytes: what follows belongs to TLS."""
    loop = asyncio.get_running_loop()
    received = b""
    while len(received) < size:
        chunk = await loop.sock_recv(sock, size - len(received))
        if not chunk:
            raise SocksError("it closed the connection")
        received += chunk
    return received
