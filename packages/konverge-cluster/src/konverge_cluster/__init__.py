"""The embedded cluster: storage, API semantics, HTTP server, built-in controllers and simulated nodes.

    async with EmbeddedServer() as server:
        server.write_kubeconfig(path)

The layers can be used alone: `Storage` holds versioned bytes, `ApiServer` handles requests for a `Cluster` without a
socket, and `EmbeddedServer` combines them, optionally on a port. `EmbeddedCluster` adds the built-in controllers,
garbage collection and nodes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge_cluster.api.cluster import Cluster
    from konverge_cluster.api.server import ApiServer
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.embedded_server import EmbeddedServer
    from konverge_cluster.storage import Storage

__all__ = ["ApiServer", "Cluster", "EmbeddedCluster", "EmbeddedServer", "Storage"]

_MODULES = {
    "ApiServer": "api.server",
    "Cluster": "api.cluster",
    "EmbeddedCluster": "embedded_cluster",
    "EmbeddedServer": "embedded_server",
    "Storage": "storage",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the server imports the HTTP library."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
