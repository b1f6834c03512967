"""The API policy/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.k8s.meta.v1 import DeleteOptions, LabelSelector
from konverge.objects.conditions import Condition
from konverge.objects.kinds import Kind
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = ["Eviction", "PodDisruptionBudget", "PodDisruptionBudgetSpec", "PodDisruptionBudgetStatus"]


class PodDisruptionBudgetSpec(Model):
    """PodDisruptionBudgetSpec is a description of a PodDisruptionBudget."""

    max_unavailable: int | str | None = None
    """An eviction is allowed if at most "maxUnavailable" pods selected by "selector" are unavailable after the
    eviction, i.e. even in absence of the evicted pod. For example, one can prevent all voluntary evictions by
    specifying 0. This is a mutually exclusive setting with "minAvailable".
    """

    min_available: int | str | None = None
    """An eviction is allowed if at least "minAvailable" pods selected by "selector" will still be available after the
    eviction, i.e. even in the absence of the evicted pod. So for example you can prevent all voluntary evictions by
    specifying "100%".
    """

    selector: LabelSelector | None = None
    """Label query over pods whose evictions are managed by the disruption budget. A null selector will match no pods,
    while an empty ({}) selector will select all pods within the namespace.
    """

    unhealthy_pod_eviction_policy: str | None = None
    """UnhealthyPodEvictionPolicy defines the criteria for when unhealthy pods should be considered for eviction.
    Current implementation considers healthy pods, as pods that have status.conditions item with
    type="Ready",status="True".

    One of `AlwaysAllow`, `IfHealthyBudget`.
    """


class PodDisruptionBudgetStatus(Model):
    """PodDisruptionBudgetStatus represents information about the status of a PodDisruptionBudget. Status may trail the
    actual state of a system.
    """

    conditions: list[Condition] = field(default_factory=list)
    """Conditions contain conditions for PDB. The disruption controller sets the DisruptionAllowed condition. The
    following are known values for the reason field (additional reasons could be added in the future): - SyncFailed:
    The controller encountered an error and wasn't able to compute the number of allowed disruptions. Therefore no
    disruptions are allowed and the status of the condition will be False. - InsufficientPods: The number of pods
    are either at or below the number required by the PodDisruptionBudget. No disruptions are allowed and the status
    of the condition will be False. - SufficientPods: There are more pods than required by the PodDisruptionBudget.
    The condition will be True, and the number of allowed disruptions are provided by the disruptionsAllowed
    property.
    """

    current_healthy: int | None = None
    """current number of healthy pods"""

    desired_healthy: int | None = None
    """minimum desired number of healthy pods"""

    disrupted_pods: dict[str, datetime] = field(default_factory=dict)
    """DisruptedPods contains information about pods whose eviction was processed by the API server eviction
    subresource handler but has not yet been observed by the PodDisruptionBudget controller. A pod will be in this
    map from the time when the API server processed the eviction request to the time when the pod is seen by PDB
    controller as having been marked for deletion (or after a timeout). The key in the map is the name of the pod
    and the value is the time when the API server processed the eviction request. If the deletion didn't occur and a
    pod is still there it will be removed from the list automatically by PodDisruptionBudget controller after some
    time. If everything goes smooth this map should be empty for the most of the time. Large number of entries in
    the map may indicate problems with pod deletions.
    """

    disruptions_allowed: int | None = None
    """Number of pod disruptions that are currently allowed."""

    expected_pods: int | None = None
    """total number of pods counted by this disruption budget"""

    observed_generation: int | None = None
    """Most recent generation observed when updating this PDB status. DisruptionsAllowed and other status information
    is valid only if observedGeneration equals to PDB's object generation.
    """


class Eviction(Resource, identity=Kind("policy", "v1", "Eviction", "evictions")):
    """Eviction evicts a pod from its node subject to certain policies and safety constraints. This is a subresource of
    Pod. A request to cause such an eviction is created by POSTing to .../pods/<pod name>/evictions.

    It has no collection of its own: it is written to `pods/eviction`.
    """

    delete_options: DeleteOptions | None = None
    """DeleteOptions may be provided"""


class PodDisruptionBudget(Resource, identity=Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")):
    """PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods"""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    """Specification of the desired behavior of the PodDisruptionBudget."""

    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)
    """Most recently observed status of the PodDisruptionBudget."""
