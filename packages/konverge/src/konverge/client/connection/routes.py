"""How a server is reached: directly, or through an HTTP or SOCKS5 proxy."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from konverge.client.connection.http_connection import HttpConnection
from konverge.client.connection.limits import Limits
from konverge.client.connection.proxies import ProxyRoute
from konverge.client.connection.sockets import WriteGuardSocket, open_socket, set_keep_alive
from konverge.wire.http1 import HttpError, ResponseParser, encode_fields, encode_request

__all__ = ["ConnectionFailed", "Route"]

_NUMERIC = re.compile(r"[0-9.]+")
_PORTS = {"http": 80, "https": 443}


class ConnectionFailed(Exception):
    """There is no connection; the text is the reason, the cause the error of the system if there is one."""


class Route:
    """The way to a server.

    Promises: a connection that is returned has finished its TLS handshake; each attempt to connect to one address ends
    within `Limits.connect`; an attempt that fails or is cancelled leaves no socket behind.
    """

    def __init__(self, server: str, *, server_name: str | None, proxy: ProxyRoute, limits: Limits) -> None:
        parts = urlsplit(server)
        self._host, self._port = _host(parts), parts.port or _PORTS[parts.scheme]
        self._server_name = server_name
        self._proxy = proxy
        self._limits = limits
        through = urlsplit(proxy.url) if proxy.url is not None else None
        self._proxy_address = through and (_host(through), through.port or _PORTS[through.scheme], through.scheme)

    async def open(self, context: ssl.SSLContext | None, factory: Callable[[], HttpConnection]) -> HttpConnection:
        """Open a connection.

        Raises: ConnectionFailed, OSError, or TimeoutError without an errno when an attempt takes too long.
        """
        _check_host(self._host)
        if self._proxy.tunnel is not None:
            return await self._open_by_socks(context, factory)
        if self._proxy_address is None:
            return await self._open_direct(self._host, self._port, context, factory)
        host, port, scheme = self._proxy_address
        proxy_context = (context or True) if scheme == "https" else None
        connection = await self._open_direct(host, port, proxy_context, factory, name=host)
        if context is None:
            return connection
        try:
            async with asyncio.timeout(self._limits.connect):
                return await self._open_tunnel(connection, context)
        except BaseException:
            connection.abort()
            raise

    async def _open_direct(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | bool | None,
        factory: Callable[[], HttpConnection],
        *,
        name: str | None = None,
    ) -> HttpConnection:
        failure: OSError | None = None
        for address in await _resolve(host, port):
            try:
                async with asyncio.timeout(self._limits.connect):
                    sock = open_socket(address, limits=self._limits)
                    return await self._connect(sock, address[4], context, factory, name=name)
            except OSError as error:
                failure = failure or error
        raise failure or ConnectionFailed("the host name has no address")

    async def _connect(
        self,
        sock: WriteGuardSocket,
        address: tuple[object, ...],
        context: ssl.SSLContext | bool | None,
        factory: Callable[[], HttpConnection],
        *,
        name: str | None,
    ) -> HttpConnection:
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return await self._start(sock, context, factory, name=name)

    async def _start(
        self,
        sock: WriteGuardSocket,
        context: ssl.SSLContext | bool | None,
        factory: Callable[[], HttpConnection],
        *,
        name: str | None = None,
    ) -> HttpConnection:
        """Return a connection on a connected socket, after the TLS handshake; `name` is that of a proxy.

        TLS to a proxy is asyncio's, since the TLS of the server goes through it.
        """
        outer = context if name is not None else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                factory, sock=sock, ssl=outer, server_hostname=name if outer else None
            )
        except BaseException:
            sock.close()
            raise
        connection.socket = sock
        if name is None and isinstance(context, ssl.SSLContext):
            await _start_tls(connection, context, self._name)
        return connection

    async def _open_by_socks(
        self, context: ssl.SSLContext | None, factory: Callable[[], HttpConnection]
    ) -> HttpConnection:
        assert self._proxy.tunnel is not None
        async with asyncio.timeout(self._limits.connect):
            sock = await self._proxy.tunnel.open(self._host, self._port)
            return await self._start(set_keep_alive(sock, self._limits.peer_timeout), context, factory)

    async def _open_tunnel(self, connection: HttpConnection, context: ssl.SSLContext) -> HttpConnection:
        """Ask the proxy for a connection to the server (CONNECT), and start TLS with the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        fields = {"host": f"{host}:{self._port}", **(self._proxy.headers or {})}
        reply = _TunnelReply()
        connection.reader = reply
        connection.write(encode_request("CONNECT", f"{host}:{self._port}", encode_fields(fields.items())), b"")
        await reply.wait()
        connection.reader = None
        await connection.start_tls(context, self._name)
        return connection

    @property
    def _name(self) -> str:
        return self._server_name or self._host.rstrip(".")


class _TunnelReply:
    """The reply of a proxy to CONNECT."""

    def __init__(self) -> None:
        self._parser = ResponseParser("CONNECT")
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self) -> None:
        """Wait until the tunnel is open.

        Raises: ConnectionFailed when the proxy refuses, OSError when it is gone.
        """
        await self._done

    def receive(self, data: bytes) -> None:
        """Receive bytes from the proxy."""
        try:
            self._parser.feed(data)
        except HttpError:
            self._fail(ConnectionFailed("the response of the proxy is not HTTP"))
        status = self._parser.status
        if status and not self._done.done():
            if 200 <= status < 300:
                self._done.set_result(None)
            else:
                self._fail(ConnectionFailed(f"the proxy refused the connection: HTTP {status}"))

    def connection_lost(self, error: BaseException | None) -> None:
        """Receive the end of the connection."""
        self._fail(error or ConnectionFailed("the connection was closed before the request was sent"))

    def _fail(self, error: BaseException) -> None:
        if not self._done.done():
            self._done.set_exception(error)


async def _start_tls(connection: HttpConnection, context: ssl.SSLContext, name: str) -> None:
    try:
        await connection.start_tls(context, name)
    except BaseException:
        connection.abort()
        raise


def _host(parts: SplitResult) -> str:
    return parts.hostname or ""


def _check_host(host: str) -> None:
    """Raise ConnectionFailed for a name that no resolver should see: `127.1` is an address for some of them."""
    if _is_address(host):
        return
    try:
        valid = not _NUMERIC.fullmatch(host) and bool(host.encode("idna"))
    except UnicodeError:
        valid = False
    if not valid:
        raise ConnectionFailed("the address is not valid")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _resolve(host: str, port: int) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    if _is_address(host):
        # No name, so nothing that blocks; the loop would use a thread.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    else:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(int(family), int(kind), protocol, name, address) for family, kind, protocol, name, address in found]
