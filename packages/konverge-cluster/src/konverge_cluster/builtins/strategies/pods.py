"""Strategy of pods: Pending at creation, a mostly immutable spec, graceful deletion once bound to a node."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext, WriteRules
from konverge_cluster.builtins import warnings
from konverge_cluster.builtins.defaults.pods import default_pod
from konverge_cluster.builtins.qos import qos_class
from konverge_cluster.builtins.strategies.pod_subresources import EphemeralContainersEndpoint, ResizeEndpoint
from konverge_cluster.builtins.strategy import BuiltinStrategy, StatusEndpoint
from konverge_cluster.builtins.validation import pod_updates, pods

__all__ = ["PodStrategy"]

_SCHEDULING_GATED: Final = {
    "lastProbeTime": None,
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "reason": "SchedulingGated",
    "status": "False",
    "type": "PodScheduled",
}


class _PodStatus(StatusEndpoint):
    """The status subresource. The QoS class stays if a client omits it."""

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        if "qosClass" in old["status"]:
            new["status"].setdefault("qosClass", old["status"]["qosClass"])


class PodStrategy(BuiltinStrategy):
    """Pods."""

    set_defaults = staticmethod(default_pod)
    generation_fields = ("spec",)
    returns_deleted = True
    status_reset_fields = ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")
    selectable_fields = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )

    def subresource_endpoints(self) -> dict[str, WriteRules]:
        return {
            "status": _PodStatus(self),
            "ephemeralcontainers": EphemeralContainersEndpoint(),
            "resize": ResizeEndpoint(),
        }

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        new["metadata"]["generation"] = 1
        if new["spec"].get("terminationGracePeriodSeconds", 0) < 0:
            new["spec"]["terminationGracePeriodSeconds"] = 1
        status: Document = {"phase": "Pending", "qosClass": qos_class(new["spec"])}
        if new["spec"].get("schedulingGates"):
            status["conditions"] = [{**_SCHEDULING_GATED, "lastTransitionTime": context.now}]
        new["status"] = status

    check = staticmethod(pods.validate_pod_create)

    def warnings_on_create(self, new: Document) -> list[str]:
        return [*warnings.pod_name_warnings(new["metadata"]["name"]), *warnings.pod_warnings(new, "spec")]

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return (*pods.validate_pod(new), *pod_updates.validate_pod_update(new, old))

    check_status = staticmethod(pod_updates.validate_pod_status_update)

    def fields(self, document: Document) -> dict[str, str]:
        fields = super().fields(document)
        fields["spec.hostNetwork"] = fields["spec.hostNetwork"] or "false"
        # A selector may name the list of addresses, but never matches.
        fields["status.podIPs"] = ""
        return fields

    def grace_period(self, document: Document, requested: int | None) -> int | None:
        spec: dict[str, Any] = document["spec"]
        period = requested if requested is not None else spec.get("terminationGracePeriodSeconds", 0)
        if not spec.get("nodeName") or document["status"].get("phase") in ("Failed", "Succeeded"):
            return 0
        return 1 if period < 0 else int(period)
