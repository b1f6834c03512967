"""The embedded control plane: storage, the semantics of the API, the HTTP front and simulated built-in controllers.

    async with EmbeddedServer() as plane:
        plane.write_kubeconfig(path)

The layers can be used alone: `Storage` holds versioned bytes, `ApiServer` answers requests on a `Cluster` without a
socket, and `EmbeddedServer` is all of it, on a port when one is wanted. `EmbeddedCluster` adds what acts on objects:
built-in controllers, garbage collection, nodes.
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

_HOMES = {
    "ApiServer": "api.server",
    "Cluster": "api.cluster",
    "EmbeddedCluster": "embedded_cluster",
    "EmbeddedServer": "embedded_server",
    "Storage": "storage",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the server loads the HTTP library."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
