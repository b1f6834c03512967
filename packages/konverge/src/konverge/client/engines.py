"""The HTTP engine of clients that use sockets, selected by KONVERGE_HTTP_ENGINE.

`http1`, the default, is `HttpTransport`, konverge's own engine; `aiohttp` is `AiohttpTransport`, which needs more CPU
and cannot check the write guard at the write. It stays for one release.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from konverge.errors import ConfigError

if TYPE_CHECKING:
    from konverge.client.access.config import ClientConfig
    from konverge.wire.messages import WebSocketTransport

__all__ = ["new_transport"]

_VARIABLE = "KONVERGE_HTTP_ENGINE"


def new_transport(config: ClientConfig) -> WebSocketTransport:
    """Return a transport to the server of a config.

    Raises: ConfigError for an engine that does not exist.
    """
    engine = os.environ.get(_VARIABLE) or "http1"
    if engine == "aiohttp":
        from konverge.client.aiohttp_transport import AiohttpTransport

        return AiohttpTransport(config)
    if engine == "http1":
        from konverge.client.transport import HttpTransport

        return HttpTransport(config)
    raise ConfigError(f"{_VARIABLE}: there is no engine {engine[:40]!r} (http1 or aiohttp)")
