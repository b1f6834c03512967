"""`is_ready` and `object_status`: the rules of kstatus, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import CustomResource, Spec, Status, is_ready
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import Condition, Unstructured, decode, encode, field, from_wire, object_status, set_condition

READY = [{"type": "Ready", "status": "True", "reason": "Done", "message": ""}]
NOT_READY = [{"type": "Ready", "status": "False", "reason": "Starting", "message": "2 of 3"}]


def obj(kind: str, status: Any = None, *, spec: Any = None, **metadata: Any) -> Unstructured:
    """Return an object of a kind such as "apps/v1 Deployment"."""
    api_version, name = kind.split()
    parts = {"spec": spec, "status": status}
    return Unstructured(
        {"apiVersion": api_version, "kind": name, "metadata": {"name": "it", "namespace": "default", **metadata}}
        | {part: value for part, value in parts.items() if value is not None}
    )


def condition(type_: str, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": f"{type_} is {status}"}


AVAILABLE = [condition("Progressing", reason="NewReplicaSetAvailable"), condition("Available")]
ROLLED_OUT = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3, "conditions": AVAILABLE}
REPLICA_SET = {"replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
STATEFUL = {"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "a"}
DAEMON = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 3,
    "currentNumberScheduled": 3,
    "updatedNumberScheduled": 3,
    "numberAvailable": 3,
    "numberReady": 3,
}
THREE = {"replicas": 3, "progressDeadlineSeconds": 600}
TWO = {"replicas": 2}

CASES: list[tuple[str, Unstructured, str]] = [
    # Rules for all kinds
    ("no status", obj("example.com/v1 WebApp"), "Current"),
    ("deleted", obj("v1 ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
    ("deleted and failed", obj("v1 Pod", {"phase": "Failed"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
    ("not observed", obj("example.com/v1 WebApp", {"observedGeneration": 1}, generation=2), "InProgress"),
    ("observed", obj("example.com/v1 WebApp", {"observedGeneration": 2}, generation=2), "Current"),
    (
        "ahead",
        obj("apps/v1 Deployment", {**ROLLED_OUT, "observedGeneration": 3}, spec=THREE, generation=2),
        "InProgress",
    ),
    ("reconciling", obj("example.com/v1 WebApp", {"conditions": [condition("Reconciling"), *READY]}), "InProgress"),
    ("stalled", obj("example.com/v1 WebApp", {"conditions": [condition("Stalled"), *READY]}), "Failed"),
    ("not stalled", obj("example.com/v1 WebApp", {"conditions": [condition("Stalled", "False"), *READY]}), "Current"),
    ("first of both", obj("v1 Secret", {"conditions": [condition("Stalled"), condition("Reconciling")]}), "Failed"),
    # The condition Ready, of custom and of other built-in kinds
    ("ready", obj("example.com/v1 WebApp", {"conditions": READY}), "Current"),
    ("not ready", obj("example.com/v1 WebApp", {"conditions": NOT_READY}), "InProgress"),
    ("unknown", obj("example.com/v1 WebApp", {"conditions": [condition("Ready", "Unknown")]}), "InProgress"),
    ("certificate", obj("cert-manager.io/v1 Certificate", {"conditions": NOT_READY}), "InProgress"),
    ("node", obj("v1 Node", {"conditions": [condition("Ready", "Unknown")]}), "InProgress"),
    ("another Deployment", obj("example.com/v1 Deployment", {"conditions": READY}), "Current"),
    # Kinds without anything to wait for
    ("config map", obj("v1 ConfigMap"), "Current"),
    ("secret", obj("v1 Secret"), "Current"),
    ("cron job", obj("batch/v1 CronJob", {}), "Current"),
    ("budget", obj("policy/v1 PodDisruptionBudget", {"observedGeneration": 1}, generation=1), "Current"),
    ("late budget", obj("policy/v1 PodDisruptionBudget", {"observedGeneration": 1}, generation=2), "InProgress"),
    ("service account", obj("v1 ServiceAccount"), "Current"),
    ("role", obj("rbac.authorization.k8s.io/v1 Role"), "Current"),
    ("ingress", obj("networking.k8s.io/v1 Ingress", {"loadBalancer": {}}), "Current"),
    ("autoscaler", obj("autoscaling/v2 HorizontalPodAutoscaler", {"desiredReplicas": 0}), "Current"),
    ("namespace", obj("v1 Namespace", {"phase": "Active"}), "Current"),
    # Deployment
    ("rolled out", obj("apps/v1 Deployment", ROLLED_OUT, spec=THREE), "Current"),
    ("new deployment", obj("apps/v1 Deployment", spec=THREE), "InProgress"),
    ("fewer replicas", obj("apps/v1 Deployment", {**ROLLED_OUT, "replicas": 2}, spec=THREE), "InProgress"),
    ("not updated", obj("apps/v1 Deployment", {**ROLLED_OUT, "updatedReplicas": 2}, spec=THREE), "InProgress"),
    ("old pods", obj("apps/v1 Deployment", {**ROLLED_OUT, "replicas": 4}, spec=THREE), "InProgress"),
    ("not available", obj("apps/v1 Deployment", {**ROLLED_OUT, "availableReplicas": 2}, spec=THREE), "InProgress"),
    ("not all ready", obj("apps/v1 Deployment", {**ROLLED_OUT, "readyReplicas": 2}, spec=THREE), "InProgress"),
    ("no progress", obj("apps/v1 Deployment", {**ROLLED_OUT, "conditions": AVAILABLE[1:]}, spec=THREE), "InProgress"),
    (
        "no deadline",
        obj("apps/v1 Deployment", {**ROLLED_OUT, "conditions": AVAILABLE[1:]}, spec={"replicas": 3}),
        "Current",
    ),
    ("unavailable", obj("apps/v1 Deployment", {**ROLLED_OUT, "conditions": AVAILABLE[:1]}, spec=THREE), "InProgress"),
    ("empty", obj("apps/v1 Deployment", {"conditions": AVAILABLE}, spec={**THREE, "replicas": 0}), "Current"),
    (
        "deadline exceeded",
        obj("apps/v1 Deployment", {"conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")]}),
        "Failed",
    ),
    # ReplicaSet
    ("replica set", obj("apps/v1 ReplicaSet", REPLICA_SET, spec=TWO), "Current"),
    ("not labeled", obj("apps/v1 ReplicaSet", {**REPLICA_SET, "fullyLabeledReplicas": 1}, spec=TWO), "InProgress"),
    ("too many", obj("apps/v1 ReplicaSet", {**REPLICA_SET, "replicas": 3}, spec=TWO), "InProgress"),
    ("no pods", obj("apps/v1 ReplicaSet", {"conditions": [condition("ReplicaFailure")]}), "InProgress"),
    # StatefulSet
    ("stateful set", obj("apps/v1 StatefulSet", STATEFUL, spec=TWO), "Current"),
    ("new stateful set", obj("apps/v1 StatefulSet", spec=TWO), "InProgress"),
    ("one ready", obj("apps/v1 StatefulSet", {**STATEFUL, "readyReplicas": 1}, spec=TWO), "InProgress"),
    ("other revision", obj("apps/v1 StatefulSet", {**STATEFUL, "updateRevision": "b"}, spec=TWO), "InProgress"),
    ("on delete", obj("apps/v1 StatefulSet", spec={"updateStrategy": {"type": "OnDelete"}}), "Current"),
    (
        "partition",
        obj(
            "apps/v1 StatefulSet",
            {**STATEFUL, "updateRevision": "b", "currentReplicas": 1, "updatedReplicas": 1},
            spec={**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        ),
        "Current",
    ),
    (
        "partition not reached",
        obj("apps/v1 StatefulSet", STATEFUL, spec={**TWO, "updateStrategy": {"rollingUpdate": {"partition": 0}}}),
        "InProgress",
    ),
    # DaemonSet
    ("daemon set", obj("apps/v1 DaemonSet", DAEMON, generation=1), "Current"),
    ("new daemon set", obj("apps/v1 DaemonSet", {"desiredNumberScheduled": 0}, generation=1), "InProgress"),
    ("no number", obj("apps/v1 DaemonSet", {"observedGeneration": 1}, generation=1), "InProgress"),
    ("no nodes", obj("apps/v1 DaemonSet", {**DAEMON, "desiredNumberScheduled": 0}, generation=1), "Current"),
    ("one missing", obj("apps/v1 DaemonSet", {**DAEMON, "numberAvailable": 2}, generation=1), "InProgress"),
    # Pod
    ("running pod", obj("v1 Pod", {"phase": "Running", "conditions": READY}), "Current"),
    ("starting pod", obj("v1 Pod", {"phase": "Running", "conditions": NOT_READY}), "InProgress"),
    ("ended pod", obj("v1 Pod", {"phase": "Succeeded"}), "Current"),
    ("failed pod", obj("v1 Pod", {"phase": "Failed"}), "Current"),
    ("new pod", obj("v1 Pod"), "InProgress"),
    ("pending pod", obj("v1 Pod", {"phase": "Pending"}), "InProgress"),
    (
        "crashing pod",
        obj(
            "v1 Pod",
            {
                "phase": "Running",
                "conditions": NOT_READY,
                "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            },
        ),
        "Failed",
    ),
    (
        "unschedulable pod",
        obj(
            "v1 Pod",
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]},
            creationTimestamp="2020-01-01T00:00:00Z",
        ),
        "Failed",
    ),
    (
        "pod that was just created",
        obj(
            "v1 Pod",
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]},
            creationTimestamp="2999-01-01T00:00:00Z",
        ),
        "InProgress",
    ),
    # Job
    ("new job", obj("batch/v1 Job", {}), "InProgress"),
    ("running job", obj("batch/v1 Job", {"startTime": "2026-01-01T00:00:00Z", "active": 1}), "Current"),
    ("complete job", obj("batch/v1 Job", {"conditions": [condition("Complete")]}), "Current"),
    ("failed job", obj("batch/v1 Job", {"failed": 6, "conditions": [condition("Failed")]}), "Failed"),
    ("suspended job", obj("batch/v1 Job", {"conditions": [condition("Suspended")]}), "Current"),
    # Other kinds
    ("service", obj("v1 Service", spec={"type": "ClusterIP"}), "Current"),
    ("load balancer", obj("v1 Service", spec={"type": "LoadBalancer"}), "InProgress"),
    ("balanced", obj("v1 Service", spec={"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), "Current"),
    ("bound claim", obj("v1 PersistentVolumeClaim", {"phase": "Bound"}), "Current"),
    ("pending claim", obj("v1 PersistentVolumeClaim", {"phase": "Pending"}), "InProgress"),
    ("new claim", obj("v1 PersistentVolumeClaim"), "InProgress"),
    (
        "crd",
        obj(
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            {"conditions": [condition("NamesAccepted"), condition("Established")]},
        ),
        "Current",
    ),
    ("new crd", obj("apiextensions.k8s.io/v1 CustomResourceDefinition"), "InProgress"),
    (
        "installing crd",
        obj(
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            {"conditions": [condition("Established", "False", "Installing")]},
        ),
        "InProgress",
    ),
    (
        "crd with taken names",
        obj(
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            {"conditions": [condition("NamesAccepted", "False", "PluralConflict")]},
        ),
        "Failed",
    ),
    # Malformed
    ("text for a number", obj("example.com/v1 WebApp", {"observedGeneration": "1"}, generation=2), "Current"),
    ("text for a list", obj("example.com/v1 WebApp", {"conditions": "none"}), "Current"),
    ("text for a status", obj("apps/v1 Deployment", "none", spec=THREE), "InProgress"),
    ("texts in a list", obj("v1 Pod", {"phase": "Running", "conditions": ["Ready"]}), "InProgress"),
]


@pytest.mark.parametrize(("one", "status"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_status_of_an_object(one: Unstructured, status: str) -> None:
    assert object_status(one).status == status
    assert is_ready(one) is (status == "Current")


def test_the_table_has_twenty_kinds() -> None:
    assert len({(one.api_version, one.kind) for _, one, _ in CASES}) >= 20


def test_an_object_that_does_not_exist_is_not_ready() -> None:
    assert not is_ready(None)


def test_typed_objects_have_the_status_of_unstructured_ones() -> None:
    wire = obj(
        "apps/v1 Deployment", ROLLED_OUT, spec={**THREE, "selector": {}, "template": {"spec": {"containers": []}}}
    )

    assert is_ready(from_wire(Deployment, wire))
    assert is_ready(decode(Deployment, encode(wire)))
    assert object_status(from_wire(Deployment, wire)) == object_status(wire)


class DoorSpec(Spec):
    open: bool = False


class DoorStatus(Status):
    observed_generation: int = 0


class Door(CustomResource[DoorSpec, DoorStatus], group="test.konverge.dev", version="v1"):
    """A class that does not have the conditions of its objects."""


def test_conditions_that_a_class_does_not_have_count() -> None:
    door = decode(Door, encode(obj("test.konverge.dev/v1 Door", {"conditions": NOT_READY}, spec={})))

    assert object_status(door).status == "InProgress"
    assert object_status(door).message == "2 of 3"


class GateStatus(Status):
    conditions: list[Condition] = field(default_factory=list)


class Gate(CustomResource[DoorSpec, GateStatus], group="test.konverge.dev", version="v1"):
    """A class with conditions."""


def test_an_edited_status_counts() -> None:
    gate = Gate.new("it")
    set_condition(gate.status.conditions, "Ready", False, reason="Closed")
    before = is_ready(gate)
    set_condition(gate.status.conditions, "Ready", True, reason="Open")

    assert (before, is_ready(gate)) == (False, True)
