"""Process nodes: containers run as local processes, each pod with a directory and a loopback address of its own.

    images = LocalImages([LocalImage("web:*", command=["python3", "/srv/web.py", "--bind", "$(POD_IP)"])])
    async with EmbeddedCluster(runtime=Processes(images)) as cluster:
        ...

`images` maps images to local programs, `runtime` is what nodes use, `process_pod` the lifecycle of one pod,
`supervisor` the program that runs the containers of a pod. `designs/0015-process-nodes.md` explains the design.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge_cluster.processes.images import LocalImage, LocalImages
    from konverge_cluster.processes.runtime import Processes

__all__ = ["LocalImage", "LocalImages", "Processes"]

_MODULES = {"LocalImage": "images", "LocalImages": "images", "Processes": "runtime"}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the supervisor of a pod imports this package and must start fast."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
