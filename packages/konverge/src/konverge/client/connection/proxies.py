"""The proxy in front of a server, if there is one."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from konverge.client.access.addresses import redact_url
from konverge.client.access.credentials import basic
from konverge.client.connection.socks import SocksProxy

__all__ = ["ProxyRoute"]


class ProxyRoute:
    """An HTTP proxy at `url`, a SOCKS5 proxy as `tunnel`, or neither.

    Promise: credentials are moved from the URL, which errors of the HTTP library contain, to `headers`.
    """

    def __init__(self, proxy: str | None) -> None:
        self.display_url = redact_url(proxy)
        self.url: str | None = None
        self.headers: dict[str, str] | None = None
        self.tunnel: SocksProxy | None = None
        if proxy is None:
            return
        parts = urlsplit(proxy)
        if parts.scheme == "socks5":
            self.tunnel = SocksProxy.parse(proxy)
            return
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if parts.username is not None:
            credentials = basic(unquote(parts.username), unquote(parts.password or ""))
            self.headers = {"proxy-authorization": credentials}
