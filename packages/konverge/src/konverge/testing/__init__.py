"""What tests of operators need: a real control plane, virtual time, and fault injection.

`ControlPlane` starts etcd and kube-apiserver (and kube-controller-manager on request). The pytest fixtures are in
`konverge.testing.fixtures`; load them with ``pytest_plugins = ["konverge.testing.fixtures"]``. `FaultProxy` and
`RawProxy` inject faults into connections to any server, `FaultTransport` does so without a socket; the faults are in
`konverge.testing.faults`.

A name is loaded on first use: the plugins of pytest import this module in projects that use nothing else of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.testing.binaries import find_binaries, kubernetes_version
    from konverge.testing.control_plane import ControlPlane
    from konverge.testing.fault_proxy import FaultProxy
    from konverge.testing.fault_transport import FaultTransport
    from konverge.testing.faults import Fault, FaultScript
    from konverge.testing.https import HttpResponse
    from konverge.testing.raw_proxy import RawProxy
    from konverge.testing.virtual_time import VirtualTimeLoop, run_in_virtual_time, settle

__all__ = [
    "ControlPlane",
    "Fault",
    "FaultProxy",
    "FaultScript",
    "FaultTransport",
    "HttpResponse",
    "RawProxy",
    "VirtualTimeLoop",
    "find_binaries",
    "kubernetes_version",
    "run_in_virtual_time",
    "settle",
]

_MODULES = {
    "ControlPlane": "control_plane",
    "Fault": "faults",
    "FaultProxy": "fault_proxy",
    "FaultScript": "faults",
    "FaultTransport": "fault_transport",
    "HttpResponse": "https",
    "RawProxy": "raw_proxy",
    "VirtualTimeLoop": "virtual_time",
    "find_binaries": "binaries",
    "kubernetes_version": "binaries",
    "run_in_virtual_time": "virtual_time",
    "settle": "virtual_time",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
