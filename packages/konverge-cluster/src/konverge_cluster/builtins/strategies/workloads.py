"""Strategies of Deployments, ReplicaSets, StatefulSets, DaemonSets, and their templates and revisions."""

# ruff: noqa: ARG004

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from konverge_cluster.api.field_errors import FieldError, required
from konverge_cluster.api.names import label_name_errors
from konverge_cluster.api.strategy import Document, RequestContext, Scaling
from konverge_cluster.builtins.defaults import workloads
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import workloads as rules
from konverge_cluster.builtins.validation.pods import validate_pod_template
from konverge_cluster.builtins.validation.values import validate_immutable, validate_nonnegative
from konverge_cluster.builtins.warnings import claim_warnings

__all__ = [
    "ControllerRevisionStrategy",
    "DaemonSetStrategy",
    "DeploymentStrategy",
    "MaxUnavailableStatefulSetStrategy",
    "PodTemplateStrategy",
    "ReplicaSetStrategy",
    "ReplicationControllerStrategy",
    "StatefulSetStrategy",
]

_SCALING: Final = Scaling(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))
_DEPLOYMENT_BOUNDED: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")
_DEPLOYMENT_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    *_DEPLOYMENT_BOUNDED,
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_REPLICA_BOUNDED: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_REPLICA_COUNTS: Final = ("replicas", *_REPLICA_BOUNDED, "observedGeneration", "terminatingReplicas")
_STATEFUL_BOUNDED: Final = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_STATEFUL_COUNTS: Final = ("replicas", *_STATEFUL_BOUNDED, "observedGeneration", "collisionCount")
_DAEMON_COUNTS: Final = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class DeploymentStrategy(BuiltinStrategy):
    """Deployments. A change of annotations also increments the generation."""

    set_defaults = staticmethod(workloads.default_deployment)
    template_path = ("spec", "template")
    names_pods = True
    generation_fields = ("spec",)
    scaling = _SCALING
    status_reset_fields = ("metadata.labels", "spec")

    def update_generation(self, new: Document, old: Document) -> None:
        if new["spec"] != old["spec"] or new["metadata"].get("annotations") != old["metadata"].get("annotations"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    check = staticmethod(rules.validate_deployment)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_deployment(new, old)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_counts(new["status"], _DEPLOYMENT_COUNTS, _DEPLOYMENT_BOUNDED)


class ReplicaSetStrategy(BuiltinStrategy):
    """ReplicaSets."""

    set_defaults = staticmethod(workloads.default_replica_set)
    template_path = ("spec", "template")
    names_pods = True
    generation_fields = ("spec",)
    scaling = _SCALING
    selectable_fields = ("status.replicas",)

    check = staticmethod(rules.validate_replica_set)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_replica_set(new, old)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_counts(new["status"], _REPLICA_COUNTS, _REPLICA_BOUNDED)


class StatefulSetStrategy(BuiltinStrategy):
    """StatefulSets."""

    set_defaults = staticmethod(workloads.default_stateful_set)
    template_path = ("spec", "template")
    generation_fields = ("spec",)
    scaling = _SCALING

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        self.drop_disabled(new)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        self.drop_disabled(new)
        super().prepare_update(new, old, context)

    @staticmethod
    def drop_disabled(new: Document) -> None:
        """Drop fields of features that a 1.36 server disables by default."""
        new["spec"]["updateStrategy"].get("rollingUpdate", {}).pop("maxUnavailable", None)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return label_name_errors(name, prefix=prefix)

    check = staticmethod(rules.validate_stateful_set)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_stateful_set_update(new, old)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_counts(new["status"], _STATEFUL_COUNTS, _STATEFUL_BOUNDED)

    def warnings_on_create(self, new: Document) -> list[str]:
        return [*super().warnings_on_create(new), *_claim_warnings(new)]

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return [*super().warnings_on_update(new, old), *_claim_warnings(new)]


def _claim_warnings(stateful_set: Document) -> Iterable[str]:
    for index, claim in enumerate(stateful_set["spec"].get("volumeClaimTemplates", ())):
        yield from claim_warnings(claim["spec"], f"spec.volumeClaimTemplates[{index}]")
    if stateful_set["spec"]["revisionHistoryLimit"] < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {text}"


class MaxUnavailableStatefulSetStrategy(StatefulSetStrategy):
    """StatefulSets with the feature gate MaxUnavailableStatefulSet: several pods are updated at a time."""

    set_defaults = staticmethod(workloads.default_stateful_set_with_max_unavailable)

    @staticmethod
    def drop_disabled(new: Document) -> None:
        """Drop nothing."""


class DaemonSetStrategy(BuiltinStrategy):
    """DaemonSets. An annotation that clients cannot set counts the changes of the template."""

    set_defaults = staticmethod(workloads.default_daemon_set)
    template_path = ("spec", "template")
    generation_fields = ("spec",)

    def default(self, document: Document) -> None:
        super().default(document)
        # It is set before managed fields are recorded, so the manager that creates the object owns it.
        document["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        annotations = new["metadata"].setdefault("annotations", {})
        annotations[_TEMPLATE_GENERATION] = str(max(1, _number(annotations.get(_TEMPLATE_GENERATION, ""))))

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        generation = _number(old["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, ""))
        changed = new["spec"]["template"] != old["spec"]["template"]
        annotations = new["metadata"].setdefault("annotations", {})
        annotations[_TEMPLATE_GENERATION] = str(generation + 1 if changed else generation)

    check = staticmethod(rules.validate_daemon_set)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_daemon_set(new, old)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_counts(new["status"], _DAEMON_COUNTS, ())


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


class ReplicationControllerStrategy(BuiltinStrategy):
    """ReplicationControllers. By default a delete orphans their pods."""

    set_defaults = staticmethod(workloads.default_replication_controller)
    template_path = ("spec", "template")
    names_pods = True
    generation_fields = ("spec",)
    scaling = _SCALING
    default_propagation = "Orphan"
    selectable_fields = ("status.replicas",)

    check = staticmethod(rules.validate_replication_controller)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_counts(new["status"], _REPLICA_COUNTS, _REPLICA_BOUNDED)


class PodTemplateStrategy(BuiltinStrategy):
    """PodTemplates."""

    set_defaults = staticmethod(workloads.default_pod_template)
    template_path = ("template",)
    generation_fields = ("template",)
    returns_deleted = True

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return validate_pod_template(new["template"], "template")


class ControllerRevisionStrategy(BuiltinStrategy):
    """ControllerRevisions. The data is immutable."""

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        yield from validate_nonnegative(new["revision"], "revision")
        if new.get("data") is None:
            yield required("data", "data is mandatory")

    @staticmethod
    def check_change(new: Document, old: Document) -> Iterable[FieldError]:
        return validate_immutable(new.get("data"), old.get("data"), "data")
