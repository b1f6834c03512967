"""What tests of operators stand on: a real control plane on this machine, started and stopped by the test run.

`ControlPlane` launches etcd and kube-apiserver (and kube-controller-manager on request). The pytest fixtures are in
`konverge.testing.fixtures`; load them with ``pytest_plugins = ["konverge.testing.fixtures"]``.
"""

from __future__ import annotations

from konverge.testing.binaries import find_binaries, kubernetes_version
from konverge.testing.controlplane import ControlPlane
from konverge.testing.https import Answer
from konverge.testing.virtualtime import VirtualTimeLoop, run_virtually, settle

__all__ = [
    "Answer",
    "ControlPlane",
    "VirtualTimeLoop",
    "find_binaries",
    "kubernetes_version",
    "run_virtually",
    "settle",
]
