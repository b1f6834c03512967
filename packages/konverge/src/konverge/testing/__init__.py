"""Tools for tests of operators: a real control plane, virtual time, and fault injection.

`ControlPlane` starts etcd and kube-apiserver (and kube-controller-manager on request). The pytest fixtures are in
`konverge.testing.fixtures`; load them with ``pytest_plugins = ["konverge.testing.fixtures"]``. `FaultProxy` and
`RawProxy` inject faults into connections to any server, `FaultTransport` does so without a socket; the faults are in
`konverge.testing.faults`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.testing.binaries import find_binaries, kubernetes_version
from konverge.testing.control_plane import ControlPlane
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import Fault, FaultScript
from konverge.testing.https import HttpResponse
from konverge.testing.virtual_time import VirtualTimeLoop, run_in_virtual_time, settle

if TYPE_CHECKING:
    from konverge.testing.fault_proxy import FaultProxy
    from konverge.testing.raw_proxy import RawProxy

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

# The proxies need the HTTP library; tests without them do not load it.
_MODULES = {"FaultProxy": "konverge.testing.fault_proxy", "RawProxy": "konverge.testing.raw_proxy"}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'konverge.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value
