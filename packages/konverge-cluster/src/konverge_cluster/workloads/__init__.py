"""The built-in workload controllers, as ordinary konverge controllers.

    manager.add(*workload_controllers())

They do what kube-controller-manager does for ReplicaSets, Deployments, StatefulSets, Jobs, CronJobs, disruption
budgets, EndpointSlices and Endpoints. Decisions are plain functions of objects (`pods`, `deployments`, `stateful_sets`,
`jobs`, `cron_jobs`, `disruption`, `services`); reconcilers only read and write.

Not implemented: hints for topology and traffic distribution, slices that mirror hand-made Endpoints, workloads for gang
scheduling of Jobs. The order of several ports in a slice, and of several subsets, may differ from the real controller.
"""

from __future__ import annotations

from typing import Any

from konverge.controller import Controller
from konverge.objects import wall_clock
from konverge_cluster.clock import Clock
from konverge_cluster.workloads.cron_jobs.reconciler import cron_job_controller
from konverge_cluster.workloads.deployments.reconciler import deployment_controller
from konverge_cluster.workloads.disruption.reconciler import disruption_controller
from konverge_cluster.workloads.disruption.stale_conditions import stale_condition_controller
from konverge_cluster.workloads.jobs.reconciler import job_controller
from konverge_cluster.workloads.jobs.stale_finalizers import stale_finalizer_controller
from konverge_cluster.workloads.replica_sets.reconciler import replica_set_controller
from konverge_cluster.workloads.services.reconciler import endpoints_controller, service_controller
from konverge_cluster.workloads.stateful_sets.reconciler import stateful_set_controller

__all__ = ["workload_controllers"]


def workload_controllers(*, clock: Clock = wall_clock) -> tuple[Controller[Any], ...]:
    """Return the workload controllers; `clock` is the wall clock of the cluster, in seconds.

    They are for Deployment, ReplicaSet, StatefulSet, Job, CronJob, Service, Endpoints, PodDisruptionBudget
    and Pod (`job-pod-finalizers`, `stale-pod-disruption`).
    """
    return (
        deployment_controller(clock),
        replica_set_controller(clock),
        stateful_set_controller(clock),
        job_controller(clock),
        stale_finalizer_controller(),
        cron_job_controller(clock),
        service_controller(),
        endpoints_controller(),
        disruption_controller(clock),
        stale_condition_controller(clock),
    )
