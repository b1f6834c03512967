"""Table rows for `kubectl get`. The columns come from the real server's data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.api.strategy import Document
from konverge_cluster.builtins.rows import clusters, pods, policies, services, workloads

__all__ = ["CELLS"]

Cells = Callable[[Document, float], list[Any]]

_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_STORAGE: Final = "storage.k8s.io"

CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("", "componentstatuses"): clusters.component_status_cells,
    ("", "configmaps"): clusters.config_map_cells,
    ("", "endpoints"): services.endpoints_cells,
    ("", "events"): clusters.event_cells,
    ("", "namespaces"): clusters.namespace_cells,
    ("", "nodes"): clusters.node_cells,
    ("", "persistentvolumeclaims"): clusters.persistent_volume_claim_cells,
    ("", "persistentvolumes"): clusters.persistent_volume_cells,
    ("", "pods"): pods.pod_cells,
    ("", "podtemplates"): workloads.pod_template_cells,
    ("", "replicationcontrollers"): workloads.replication_controller_cells,
    ("", "resourcequotas"): clusters.resource_quota_cells,
    ("", "secrets"): clusters.secret_cells,
    ("", "serviceaccounts"): clusters.service_account_cells,
    ("", "services"): services.service_cells,
    ("apiregistration.k8s.io", "apiservices"): policies.api_service_cells,
    ("apps", "controllerrevisions"): workloads.controller_revision_cells,
    ("apps", "daemonsets"): workloads.daemon_set_cells,
    ("apps", "deployments"): workloads.deployment_cells,
    ("apps", "replicasets"): workloads.replica_set_cells,
    ("apps", "statefulsets"): workloads.stateful_set_cells,
    ("autoscaling", "horizontalpodautoscalers"): policies.autoscaler_cells,
    ("batch", "cronjobs"): workloads.cron_job_cells,
    ("batch", "jobs"): workloads.job_cells,
    ("certificates.k8s.io", "certificatesigningrequests"): policies.certificate_request_cells,
    ("coordination.k8s.io", "leases"): clusters.lease_cells,
    ("discovery.k8s.io", "endpointslices"): services.endpoint_slice_cells,
    ("node.k8s.io", "runtimeclasses"): policies.runtime_class_cells,
    ("policy", "poddisruptionbudgets"): policies.disruption_budget_cells,
    ("scheduling.k8s.io", "priorityclasses"): policies.priority_class_cells,
    (_ADMISSION, "mutatingadmissionpolicies"): policies.policy_cells,
    (_ADMISSION, "mutatingadmissionpolicybindings"): policies.policy_binding_cells,
    (_ADMISSION, "mutatingwebhookconfigurations"): policies.webhooks_cells,
    (_ADMISSION, "validatingadmissionpolicies"): policies.policy_cells,
    (_ADMISSION, "validatingadmissionpolicybindings"): policies.policy_binding_cells,
    (_ADMISSION, "validatingwebhookconfigurations"): policies.webhooks_cells,
    (_FLOW, "flowschemas"): policies.flow_schema_cells,
    (_FLOW, "prioritylevelconfigurations"): policies.priority_level_cells,
    (_NETWORKING, "ingressclasses"): services.ingress_class_cells,
    (_NETWORKING, "ingresses"): services.ingress_cells,
    (_NETWORKING, "ipaddresses"): services.ip_address_cells,
    (_NETWORKING, "networkpolicies"): services.network_policy_cells,
    (_NETWORKING, "servicecidrs"): services.service_cidr_cells,
    (_RBAC, "clusterrolebindings"): policies.binding_cells,
    (_RBAC, "rolebindings"): policies.binding_cells,
    (_RESOURCE, "deviceclasses"): policies.device_class_cells,
    (_RESOURCE, "resourceclaims"): policies.resource_claim_cells,
    (_RESOURCE, "resourceclaimtemplates"): policies.device_class_cells,
    (_RESOURCE, "resourceslices"): policies.resource_slice_cells,
    (_STORAGE, "csidrivers"): clusters.csi_driver_cells,
    (_STORAGE, "csinodes"): clusters.csi_node_cells,
    (_STORAGE, "storageclasses"): clusters.storage_class_cells,
    (_STORAGE, "volumeattachments"): clusters.volume_attachment_cells,
    (_STORAGE, "volumeattributesclasses"): clusters.volume_attributes_class_cells,
}
"""Functions that return the cells of a row. A kind that is not listed shows its name and creation time."""
