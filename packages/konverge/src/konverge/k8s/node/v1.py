"""The API node.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from konverge.k8s.core.v1 import Toleration
from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.quantities import QuantityText
from konverge.objects.resources import Resource

__all__ = ["Overhead", "RuntimeClass", "Scheduling"]


class Overhead(Model):
    """Overhead structure represents the resource overhead associated with running a pod."""

    pod_fixed: dict[str, QuantityText] = field(default_factory=dict)
    """podFixed represents the fixed resource overhead associated with running a pod."""


class Scheduling(Model):
    """Scheduling specifies the scheduling constraints for nodes supporting a RuntimeClass."""

    node_selector: dict[str, str] = field(default_factory=dict)
    """nodeSelector lists labels that must be present on nodes that support this RuntimeClass. Pods using this
    RuntimeClass can only be scheduled to a node matched by this selector. The RuntimeClass nodeSelector is merged
    with a pod's existing nodeSelector. Any conflicts will cause the pod to be rejected in admission.
    """

    tolerations: list[Toleration] = field(default_factory=list)
    """tolerations are appended (excluding duplicates) to pods running with this RuntimeClass during admission,
    effectively unioning the set of nodes tolerated by the pod and the RuntimeClass.
    """


class RuntimeClass(Resource, identity=Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", Scope.CLUSTER)):
    """RuntimeClass defines a class of container runtime supported in the cluster. The RuntimeClass is used to
    determine which container runtime is used to run all containers in a pod. RuntimeClasses are manually defined by
    a user or cluster provisioner, and referenced in the PodSpec. The Kubelet is responsible for resolving the
    RuntimeClassName reference before running the pod. For more details, see
    https://kubernetes.io/docs/concepts/containers/runtime-class/
    """

    handler: str
    """handler specifies the underlying runtime and configuration that the CRI implementation will use to handle pods
    of this class. The possible values are specific to the node & CRI configuration. It is assumed that all handlers
    are available on every node, and handlers of the same name are equivalent on every node. For example, a handler
    called "runc" might specify that the runc OCI runtime (using native Linux containers) will be used to run the
    containers in a pod. The Handler must be lowercase, conform to the DNS Label (RFC 1123) requirements, and is
    immutable.
    """

    overhead: Overhead | None = None
    """overhead represents the resource overhead associated with running a pod for a given RuntimeClass. For more
    details, see https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/
    """

    scheduling: Scheduling | None = None
    """scheduling holds the scheduling constraints to ensure that pods running with this RuntimeClass are scheduled to
    nodes that support it. If scheduling is nil, this RuntimeClass is assumed to be supported by all nodes.
    """
