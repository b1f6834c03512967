"""The API autoscaling/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.objects.kinds import Kind
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
]


class CrossVersionObjectReference(Model):
    """CrossVersionObjectReference contains enough information to let you identify the referred resource."""

    api_version: str | None = None
    """apiVersion is the API version of the referent"""

    kind: str
    """kind is the kind of the referent; More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """

    name: str
    """name is the name of the referent; More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
    """


class HorizontalPodAutoscalerSpec(Model):
    """specification of a horizontal pod autoscaler."""

    max_replicas: int
    """maxReplicas is the upper limit for the number of pods that can be set by the autoscaler; cannot be smaller than
    MinReplicas.
    """

    min_replicas: int | None = None
    """minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down. It defaults to
    1 pod. minReplicas is allowed to be 0 if the alpha feature gate HPAScaleToZero is enabled and at least one
    Object or External metric is configured. Scaling is active as long as at least one metric value is available.
    """

    scale_target_ref: CrossVersionObjectReference
    """reference to scaled resource; horizontal pod autoscaler will learn the current resource consumption and will set
    the desired number of pods by using its Scale subresource.
    """

    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """targetCPUUtilizationPercentage is the target average CPU utilization (represented as a percentage of requested
    CPU) over all the pods; if not specified the default autoscaling policy will be used.
    """


class HorizontalPodAutoscalerStatus(Model):
    """current status of a horizontal pod autoscaler"""

    current_cpu_utilization_percentage: int | None = field(default=None, name="currentCPUUtilizationPercentage")
    """currentCPUUtilizationPercentage is the current average CPU utilization over all pods, represented as a
    percentage of requested CPU, e.g. 70 means that an average pod is using now 70% of its requested CPU.
    """

    current_replicas: int | None = None
    """currentReplicas is the current number of replicas of pods managed by this autoscaler."""

    desired_replicas: int | None = None
    """desiredReplicas is the desired number of replicas of pods managed by this autoscaler."""

    last_scale_time: datetime | None = None
    """lastScaleTime is the last time the HorizontalPodAutoscaler scaled the number of pods; used by the autoscaler to
    control how often the number of pods is changed.
    """

    observed_generation: int | None = None
    """observedGeneration is the most recent generation observed by this autoscaler."""


class ScaleSpec(Model):
    """ScaleSpec describes the attributes of a scale subresource."""

    replicas: int | None = None
    """replicas is the desired number of instances for the scaled object."""


class ScaleStatus(Model):
    """ScaleStatus represents the current status of a scale subresource."""

    replicas: int | None = None
    """replicas is the actual number of observed instances of the scaled object."""

    selector: str | None = None
    """selector is the label query over pods that should match the replicas count. This is same as the label selector
    but in the string format to avoid introspection by clients. The string will be in the same format as the
    query-param syntax. More info about label selectors:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
    """


class HorizontalPodAutoscaler(
    Resource, identity=Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
):
    """configuration of a horizontal pod autoscaler."""

    spec: HorizontalPodAutoscalerSpec
    """spec defines the behaviour of autoscaler. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    """

    status: HorizontalPodAutoscalerStatus = field(default_factory=HorizontalPodAutoscalerStatus)
    """status is the current information about the autoscaler."""


class Scale(Resource, identity=Kind("autoscaling", "v1", "Scale", "scales")):
    """Scale represents a scaling request for a resource.

    It has no collection of its own: it is written to `deployments/scale`, `replicasets/scale`,
    `replicationcontrollers/scale`, `statefulsets/scale`.
    """

    spec: ScaleSpec = field(default_factory=ScaleSpec)
    """spec defines the behavior of the scale. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    """

    status: ScaleStatus = field(default_factory=ScaleStatus)
    """status is the current status of the scale. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status. Read-only.
    """
