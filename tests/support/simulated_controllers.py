"""The built-in controllers of the embedded cluster as an operator under test: the cluster runs all but these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge import Operator
from konverge.controller import Controller
from konverge_cluster.testing import TestCluster, virtual_clock
from konverge_cluster.volumes import provisioner_controllers, volume_controllers
from konverge_cluster.workloads import workload_controllers

__all__ = ["ClusterWithoutVolumes", "ClusterWithoutWorkloads", "volume_operator", "workload_operator"]

Controllers = tuple[Controller[Any], ...]


def workload_operator() -> Operator:
    return Operator(name="workloads", controllers=workload_controllers(clock=virtual_clock))


def volume_operator() -> Operator:
    return Operator(
        name="volumes",
        controllers=(*volume_controllers(clock=virtual_clock), *provisioner_controllers(clock=virtual_clock)),
    )


class _ClusterWithout(TestCluster):
    """Without RBAC: the cluster runs its own controllers as the admin, so they declare few of their permissions."""

    operator_under_test: Callable[[], Operator]

    def __init__(self, **options: Any) -> None:
        super().__init__(rbac=False, **options)

    def builtin_controllers(self) -> Controllers:
        tested = {one.name for one in type(self).operator_under_test().controllers}
        return tuple(one for one in super().builtin_controllers() if one.name not in tested)


class ClusterWithoutWorkloads(_ClusterWithout):
    operator_under_test = staticmethod(workload_operator)


class ClusterWithoutVolumes(_ClusterWithout):
    operator_under_test = staticmethod(volume_operator)
