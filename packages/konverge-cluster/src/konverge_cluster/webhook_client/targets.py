"""The address of a webhook, from the `clientConfig` of its configuration."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["Service", "Target"]


@dataclass(frozen=True, slots=True)
class Service:
    """A reference to a service of the cluster."""

    namespace: str
    name: str
    port: int = 443

    @property
    def host(self) -> str:
        """The host name that the service's certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Target:
    """The address of one webhook: `server` is scheme and host, `path` is unescaped and normalized.

    With `ca_bundle` None the system's certificate authorities are trusted.

    `service` is set when the configuration names a service instead of a URL.
    """

    server: str
    path: str
    ca_bundle: bytes | None = None
    service: Service | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Target:
        """Read a valid `clientConfig`."""
        bundle = base64.b64decode(config.get("caBundle") or "") or None
        reference = config.get("service")
        if reference is not None:
            service = Service(reference["namespace"], reference["name"], reference.get("port") or 443)
            server = f"https://{service.host}:{service.port}"
            return cls(server, _clean(reference.get("path") or ""), bundle, service)
        parts = urlsplit(config.get("url") or "")
        return cls(f"{parts.scheme}://{parts.netloc}", _clean(unquote(parts.path)), bundle)

    @property
    def url(self) -> str:
        """The URL as error messages show it."""
        return self.server + self.path


def _clean(path: str) -> str:
    """Normalize a path as Go's path.Join does: one slash between segments, none at the end."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return "/" + "/".join(steps)
