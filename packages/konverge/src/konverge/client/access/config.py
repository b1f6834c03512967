"""The configuration of a client: the API server, the credentials and the TLS settings."""

from __future__ import annotations

import re
import ssl
import sys
from dataclasses import dataclass, field

from konverge.client.access.addresses import check_proxy, check_server, redact_url
from konverge.client.access.credentials import ANONYMOUS, Credentials, Identity
from konverge.client.access.locations import Location
from konverge.client.access.tls import Tls
from konverge.client.impersonation import Impersonation

__all__ = ["ClientConfig", "check_namespace"]

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def default_user_agent() -> str:
    """Return the user agent with version and platform; the server's audit log contains it."""
    import platform  # both cost more than the rest of the client, and nothing else needs them
    from importlib import metadata

    try:
        version = metadata.version("konverge")
    except metadata.PackageNotFoundError:
        version = "unknown"
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"konverge/{version} ({platform.system().lower()}/{platform.machine()}) python/{python}"


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """The address of an API server, the credentials, and the TLS settings.

    Credentials and certificates may rotate: call `credentials.identity()` before each request and
    `ssl_context(identity)` for its connection. Both return the same object until something rotates. Neither is used for
    a plain http:// server: no secret is sent over such a connection.

    Promise: the repr contains no secrets.
    """

    server: str
    namespace: str = "default"
    credentials: Credentials = ANONYMOUS
    tls: Tls = field(default_factory=Tls)
    proxy: str | None = field(default=None, repr=False)
    impersonation: Impersonation | None = None
    user_agent: str = field(default_factory=default_user_agent)
    disable_compression: bool = False
    origin: str = "arguments"
    """The source of this configuration, for logs."""

    def __post_init__(self) -> None:
        location = Location("client config")
        object.__setattr__(self, "server", check_server(self.server, location.child("server")))
        check_namespace(self.namespace, location.child("namespace"))
        if self.proxy is not None:
            check_proxy(self.proxy, location.child("proxy"))
        if not self.secure:
            object.__setattr__(self, "credentials", ANONYMOUS)

    @property
    def secure(self) -> bool:
        """True when the connection is encrypted."""
        return self.server.startswith("https://")

    @property
    def proxy_for_display(self) -> str | None:
        """The proxy without user and password, for logs."""
        return redact_url(self.proxy)

    def ssl_context(self, identity: Identity | None = None) -> ssl.SSLContext | None:
        """Return the TLS context for a new connection with that identity, None for a plain http:// server.

        Raises: ConfigError when the client certificate is unusable.
        """
        if not self.secure:
            return None
        return self.tls.context(identity.certificate if identity is not None else None)


def check_namespace(namespace: str, location: Location) -> None:
    """Raise ConfigError for anything but the name of a namespace."""
    if not _DNS_LABEL.fullmatch(namespace):
        raise location.error("expected the name of a namespace", "a DNS label: lower case letters, digits and -")
