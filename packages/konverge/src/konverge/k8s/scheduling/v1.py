"""The API scheduling.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from konverge.objects.kinds import Kind, Scope
from konverge.objects.resources import Resource

__all__ = ["PriorityClass"]


class PriorityClass(
    Resource, identity=Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", Scope.CLUSTER)
):
    """PriorityClass defines mapping from a priority class name to the priority integer value. The value can be any
    valid integer.
    """

    description: str | None = None
    """description is an arbitrary string that usually provides guidelines on when this priority class should be
    used.
    """

    global_default: bool | None = None
    """globalDefault specifies whether this PriorityClass should be considered as the default priority for pods that do
    not have any priority class. Only one PriorityClass can be marked as `globalDefault`. However, if more than one
    PriorityClasses exists with their `globalDefault` field set to true, the smallest value of such global default
    PriorityClasses will be used as the default priority.
    """

    preemption_policy: str | None = None
    """preemptionPolicy is the Policy for preempting pods with lower priority. One of Never, PreemptLowerPriority.
    Defaults to PreemptLowerPriority if unset.

    One of `Never`, `PreemptLowerPriority`.
    """

    value: int | None = None
    """value represents the integer value of this priority class. This is the actual priority that pods receive when
    they have the name of this class in their pod spec.
    """
