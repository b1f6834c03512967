"""The children of a Database: what the members are made of, and what leads to them."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import ConfigMap, Service, ServiceAccount
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.k8s.rbac.v1 import Role, RoleBinding
from konverge.objects import AnyObject, Kind, Unstructured
from konverge_operators.database.api import Database
from konverge_operators.database.backups.destinations import Access, access_to, archive_path, destination_of, root_of
from konverge_operators.database.engine import MemberTemplate
from konverge_operators.database.names import (
    OPERATOR,
    RESTART,
    REVISION,
    authority_map,
    engine_config,
    labels_of,
    read_only_service,
    read_write_service,
    selector_of,
)
from konverge_operators.database.scheduling import scheduling_of
from konverge_operators.database.storage import claim_spec
from konverge_operators.manifests import Json, child, disruption_budget, pod_spec

__all__ = ["KINDS", "POD_MONITOR", "authorities", "base_objects", "pod_template", "revision_of", "stateful_set"]

KINDS = (StatefulSet, ConfigMap, Service, ServiceAccount, Role, RoleBinding, PodDisruptionBudget, NetworkPolicy)
POD_MONITOR = Kind("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
_ROOT = "archive-root"
_REQUESTS = {"cpu": "250m", "memory": "512Mi"}


def base_objects(database: Database, template: MemberTemplate, *, pod_monitors: bool = False) -> list[AnyObject]:
    """Return all children but the StatefulSet: they exist before the members.

    `pod_monitors` is whether the Prometheus operator is installed. Without it the headless Service is annotated: a
    change of that, unlike one of the pods, restarts nothing.
    """
    name, labels = database.name, labels_of(database)
    objects: list[AnyObject] = [
        child(ConfigMap, engine_config(database), labels, data={**template.config, **_archive_root(database)}),
        child(ServiceAccount, name, labels, automountServiceAccountToken=False),
        *_services(database, template, {} if pod_monitors else _scrape_annotations(template)),
        child(PodDisruptionBudget, name, labels, spec=disruption_budget(selector_of(database))),
        child(NetworkPolicy, name, labels, spec=_network_policy(database, template)),
    ]
    if template.role_rules:
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": database.namespace}
        objects.append(child(Role, name, labels, rules=template.role_rules))
        objects.append(child(RoleBinding, name, labels, roleRef=role, subjects=[subject]))
    if template.metrics_port and pod_monitors:
        objects.append(_pod_monitor(database, template))
    return objects


def authorities(database: Database, bundle: str) -> ConfigMap:
    """Return the ConfigMap with the authorities that clients trust."""
    return child(ConfigMap, authority_map(database), labels_of(database), data={"ca.crt": bundle})


def pod_template(database: Database, template: MemberTemplate, major: str) -> Json:
    """Return the pods of a major version. The annotations have a hash of this template and of the engine's files."""
    annotations = dict(template.pod_annotations)
    if restart := database.metadata.annotations.get(RESTART):
        annotations[RESTART] = restart
    metadata: Json = {"labels": labels_of(database), "annotations": annotations}
    found: Json = {"metadata": metadata, "spec": _pods(database, template, major)}
    digest = sha256(json.dumps([found, template.config], sort_keys=True).encode()).hexdigest()[:16]
    annotations[REVISION] = digest
    return found


def revision_of(template: Json) -> str:
    """Return the hash of a pod template."""
    return str(template["metadata"]["annotations"][REVISION])


def stateful_set(database: Database, pods: Json, *, replicas: int, storage: str) -> StatefulSet:
    """Return the StatefulSet. The operator raises `replicas` one by one, and deletes the pods that are outdated."""
    spec = {
        "replicas": replicas,
        "serviceName": database.name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "selector": {"matchLabels": selector_of(database)},
        "template": pods,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec(database, storage)}],
    }
    return child(StatefulSet, database.name, labels_of(database), spec=spec)


def _pods(database: Database, template: MemberTemplate, major: str) -> Json:
    spec, resources, archive = database.spec, database.spec.resources, _archive(database, major)
    mounts = [
        *template.container.get("volumeMounts", ()),
        *archive.mounts,
        {"name": "data", "mountPath": template.data_path},
        {"name": "config", "mountPath": template.config_path, "readOnly": True},
    ]
    requests = {"requests": {**_REQUESTS, **resources.requests}, "limits": dict(resources.limits)}
    env = [*template.container.get("env", ()), *archive.env]
    container = {**template.container, "name": "database", "env": env, "resources": requests, "volumeMounts": mounts}
    config = {"name": "config", "configMap": {"name": engine_config(database)}}
    fields: Json = {
        "volumes": [*template.volumes, *archive.volumes, config],
        "serviceAccountName": database.name,
        "automountServiceAccountToken": bool(template.role_rules),
        "terminationGracePeriodSeconds": template.grace_period,
        **scheduling_of(database),
    }
    pods = pod_spec(container, selector_of(database), user=template.user, **fields)
    for constraint in pods["topologySpreadConstraints"]:
        constraint["topologyKey"] = spec.scheduling.spread_by
    if template.init_containers:
        shared = {name: pods["containers"][0][name] for name in ("securityContext", "volumeMounts")}
        pods["initContainers"] = [{"resources": requests, **one, **shared} for one in template.init_containers]
    return pods


def _archive(database: Database, major: str) -> Access:
    """Return what leads members of a major version to the archive of their log."""
    if not _has_archive(database):
        return Access()
    reference = {"configMapKeyRef": {"name": engine_config(database), "key": _ROOT}}
    access = access_to(destination_of(database), archive_path("$(ARCHIVE_ROOT)", major))
    return replace(access, env=[{"name": "ARCHIVE_ROOT", "valueFrom": reference}, *access.env])


def _archive_root(database: Database) -> dict[str, str]:
    """Return the root of the archive, which is no part of the template: it has the uid of the object."""
    return {_ROOT: root_of(database)} if _has_archive(database) else {}


def _has_archive(database: Database) -> bool:
    return database.spec.backup.enabled and database.spec.backup.wal


def _services(database: Database, template: MemberTemplate, annotations: dict[str, str]) -> list[Service]:
    labels, selected = labels_of(database), selector_of(database)
    ports = [{"name": "database", "port": template.port, "targetPort": template.port}]
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selected, "ports": ports}
    primary = {"selector": {**selected, **template.primary_labels}, "ports": ports}
    replicas = {"selector": {**selected, **template.replica_labels}, "ports": ports}
    return [
        child(Service, database.name, labels, annotations, spec=headless),
        child(Service, read_write_service(database), labels, spec=primary),
        child(Service, read_only_service(database), labels, spec=replicas),
    ]


def _metrics_port(template: MemberTemplate) -> int:
    ports = {one["name"]: int(one["containerPort"]) for one in template.container["ports"]}
    return ports[template.metrics_port]


def _scrape_annotations(template: MemberTemplate) -> dict[str, str]:
    if not template.metrics_port:
        return {}
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(_metrics_port(template))}


def _pod_monitor(database: Database, template: MemberTemplate) -> Unstructured:
    endpoint = {"port": template.metrics_port, "path": "/metrics"}
    spec = {"selector": {"matchLabels": selector_of(database)}, "podMetricsEndpoints": [endpoint]}
    metadata = {"name": database.name, "labels": labels_of(database)}
    return Unstructured(apiVersion=POD_MONITOR.api_version, kind=POD_MONITOR.kind, metadata=metadata, spec=spec)


def _network_policy(database: Database, template: MemberTemplate) -> Json:
    """Return a policy: clients of the namespace reach the database, members and the operator also their other ports.

    Prometheus reaches the metrics, from whatever namespace it is in.
    """
    members = {"podSelector": {"matchLabels": selector_of(database)}}
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": OPERATOR}}}
    ports = [{"port": port} for port in (template.port, *template.member_ports)]
    ingress: list[Json] = [
        {"from": [{"podSelector": {}}], "ports": ports[:1]},
        {"from": [members, operator], "ports": ports},
    ]
    if template.metrics_port:
        prometheus = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}}}
        ingress.append({"from": [prometheus], "ports": [{"port": _metrics_port(template)}]})
    return {
        "podSelector": {"matchLabels": selector_of(database)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
