"""The strategies of the built-in resources. A resource that is not listed has no rules besides its Go struct."""

from __future__ import annotations

from typing import Final

from konverge_cluster.builtins.strategies import (
    access,
    autoscaling,
    batch,
    certificates,
    clusters,
    configuration,
    events,
    networking,
    pods,
    policies,
    registrations,
    services,
    storage,
    workloads,
)
from konverge_cluster.builtins.strategy import BuiltinStrategy

__all__ = ["STRATEGIES"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"

STRATEGIES: Final[dict[tuple[str, str, str], type[BuiltinStrategy]]] = {
    ("", "v1", "configmaps"): configuration.ConfigMapStrategy,
    ("", "v1", "endpoints"): networking.EndpointsStrategy,
    ("", "v1", "events"): events.CoreEventStrategy,
    ("", "v1", "limitranges"): clusters.LimitRangeStrategy,
    ("", "v1", "namespaces"): clusters.NamespaceStrategy,
    ("", "v1", "nodes"): clusters.NodeStrategy,
    ("", "v1", "persistentvolumeclaims"): storage.PersistentVolumeClaimStrategy,
    ("", "v1", "persistentvolumes"): storage.PersistentVolumeStrategy,
    ("", "v1", "pods"): pods.PodStrategy,
    ("", "v1", "podtemplates"): workloads.PodTemplateStrategy,
    ("", "v1", "replicationcontrollers"): workloads.ReplicationControllerStrategy,
    ("", "v1", "resourcequotas"): clusters.ResourceQuotaStrategy,
    ("", "v1", "secrets"): configuration.SecretStrategy,
    ("", "v1", "serviceaccounts"): access.ServiceAccountStrategy,
    ("", "v1", "services"): services.ServiceStrategy,
    ("apiregistration.k8s.io", "v1", "apiservices"): registrations.APIServiceStrategy,
    ("apps", "v1", "controllerrevisions"): workloads.ControllerRevisionStrategy,
    ("apps", "v1", "daemonsets"): workloads.DaemonSetStrategy,
    ("apps", "v1", "deployments"): workloads.DeploymentStrategy,
    ("apps", "v1", "replicasets"): workloads.ReplicaSetStrategy,
    ("apps", "v1", "statefulsets"): workloads.StatefulSetStrategy,
    ("autoscaling", "v1", "horizontalpodautoscalers"): autoscaling.HorizontalPodAutoscalerV1Strategy,
    ("autoscaling", "v2", "horizontalpodautoscalers"): autoscaling.HorizontalPodAutoscalerStrategy,
    ("batch", "v1", "cronjobs"): batch.CronJobStrategy,
    ("batch", "v1", "jobs"): batch.JobStrategy,
    ("certificates.k8s.io", "v1", "certificatesigningrequests"): certificates.CertificateSigningRequestStrategy,
    ("coordination.k8s.io", "v1", "leases"): policies.LeaseStrategy,
    ("discovery.k8s.io", "v1", "endpointslices"): networking.EndpointSliceStrategy,
    ("events.k8s.io", "v1", "events"): events.EventStrategy,
    ("node.k8s.io", "v1", "runtimeclasses"): registrations.RuntimeClassStrategy,
    ("policy", "v1", "poddisruptionbudgets"): policies.PodDisruptionBudgetStrategy,
    ("scheduling.k8s.io", "v1", "priorityclasses"): registrations.PriorityClassStrategy,
    (_ADMISSION, "v1", "mutatingadmissionpolicies"): registrations.AdmissionPolicyStrategy,
    (_ADMISSION, "v1", "mutatingadmissionpolicybindings"): registrations.AdmissionPolicyBindingStrategy,
    (_ADMISSION, "v1", "mutatingwebhookconfigurations"): registrations.MutatingWebhookStrategy,
    (_ADMISSION, "v1", "validatingadmissionpolicies"): registrations.AdmissionPolicyStrategy,
    (_ADMISSION, "v1", "validatingadmissionpolicybindings"): registrations.AdmissionPolicyBindingStrategy,
    (_ADMISSION, "v1", "validatingwebhookconfigurations"): registrations.ValidatingWebhookStrategy,
    (_FLOW, "v1", "flowschemas"): registrations.FlowSchemaStrategy,
    (_FLOW, "v1", "prioritylevelconfigurations"): registrations.PriorityLevelStrategy,
    (_NETWORKING, "v1", "ingressclasses"): networking.IngressClassStrategy,
    (_NETWORKING, "v1", "ingresses"): networking.IngressStrategy,
    (_NETWORKING, "v1", "ipaddresses"): networking.IPAddressStrategy,
    (_NETWORKING, "v1", "networkpolicies"): networking.NetworkPolicyStrategy,
    (_NETWORKING, "v1", "servicecidrs"): networking.ServiceCIDRStrategy,
    (_RBAC, "v1", "clusterrolebindings"): access.ClusterRoleBindingStrategy,
    (_RBAC, "v1", "clusterroles"): access.ClusterRoleStrategy,
    (_RBAC, "v1", "rolebindings"): access.RoleBindingStrategy,
    (_RBAC, "v1", "roles"): access.RoleStrategy,
    (_STORAGE, "v1", "csidrivers"): storage.CSIDriverStrategy,
    (_STORAGE, "v1", "csinodes"): storage.CSINodeStrategy,
    (_STORAGE, "v1", "csistoragecapacities"): storage.CSIStorageCapacityStrategy,
    (_STORAGE, "v1", "storageclasses"): storage.StorageClassStrategy,
    (_STORAGE, "v1", "volumeattachments"): storage.VolumeAttachmentStrategy,
    (_STORAGE, "v1", "volumeattributesclasses"): storage.VolumeAttributesClassStrategy,
}
