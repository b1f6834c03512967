"""What tests of operators stand on: a real control plane, virtual time, and faults on the way to a server.

`ControlPlane` launches etcd and kube-apiserver (and kube-controller-manager on request). The pytest fixtures are in
`konverge.testing.fixtures`; load them with ``pytest_plugins = ["konverge.testing.fixtures"]``. `FaultProxy` and
`RawProxy` break connections to any server on purpose, `FaultyTransport` does so without a socket; what can go wrong is
in `konverge.testing.faults`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.testing.binaries import find_binaries, kubernetes_version
from konverge.testing.control_plane import ControlPlane
from konverge.testing.fault_transport import FaultyTransport
from konverge.testing.faults import Fault, FaultScript
from konverge.testing.https import Answer
from konverge.testing.virtual_time import VirtualTimeLoop, run_virtually, settle

if TYPE_CHECKING:
    from konverge.testing.fault_proxy import FaultProxy
    from konverge.testing.raw_proxy import RawProxy

__all__ = [
    "Answer",
    "ControlPlane",
    "Fault",
    "FaultProxy",
    "FaultScript",
    "FaultyTransport",
    "RawProxy",
    "VirtualTimeLoop",
    "find_binaries",
    "kubernetes_version",
    "run_virtually",
    "settle",
]

# The proxies need the HTTP library; tests without them do not wait for it.
_HOME = {"FaultProxy": "konverge.testing.fault_proxy", "RawProxy": "konverge.testing.raw_proxy"}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'konverge.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
