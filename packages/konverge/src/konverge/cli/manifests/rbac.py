"""RBAC: the service account of the operator and its least privileges.

The permissions that the controllers declare are granted where the operator works: by a ClusterRole, or by a Role in
each of its namespaces. Its lease and the Secret with its certificate are granted by name, in its own namespace. Who
may read metrics and debug is decided by the API server: the operator may ask, and two ClusterRoles grant it to others.
"""

from __future__ import annotations

from typing import Any

from konverge.cli.manifests.release import Release
from konverge.controller import EVENTS, LEASES, rules_of
from konverge.objects import Unstructured

__all__ = ["rbac_objects"]

_API = "rbac.authorization.k8s.io/v1"


def rbac_objects(release: Release) -> list[Unstructured]:
    """Return the ServiceAccount, roles and bindings."""
    account = release.new_object("ServiceAccount", release.name, automountServiceAccountToken=False)
    objects = [account, *_controller_roles(release), *_own_roles(release)]
    if release.operator.webhooks:
        objects += _webhook_roles(release)
    if not release.insecure_metrics:
        objects += _metrics_roles(release)
    return objects


def _controller_roles(release: Release) -> list[Unstructured]:
    """Return the roles for the permissions that the controllers declare."""
    permissions = set(release.operator.permissions()) - set(LEASES)
    if not release.namespaces:
        return _role_and_binding(release, "ClusterRole", release.name, rules_of(permissions))
    objects: list[Unstructured] = []
    for namespace in release.namespaces:
        objects += _role_and_binding(release, "Role", release.name, rules_of(permissions), namespace=namespace)
    return objects


def _own_roles(release: Release) -> list[Unstructured]:
    """Return the role in the operator's own namespace, for its lease, events about the lease, and its certificate."""
    rules: list[dict[str, Any]] = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [release.name],
            "verbs": ["get", "update"],
        },
    ]
    if release.namespaces and release.namespace not in release.namespaces:
        rules += rules_of(EVENTS)
    if release.operator.webhooks:
        name = f"{release.name}-webhook-certificate"
        rules += [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get", "patch"]},
        ]
    return _role_and_binding(release, "Role", f"{release.name}-own", rules, namespace=release.namespace)


def _webhook_roles(release: Release) -> list[Unstructured]:
    """Return the role for the objects whose caBundle the operator keeps up to date, by name."""
    names: dict[tuple[str, str], list[str]] = {}
    for configuration in release.webhook_configurations():
        plural = f"{configuration.kind.lower()}s"
        names.setdefault(("admissionregistration.k8s.io", plural), []).append(configuration.name)
    for crd in release.crds():
        if "conversion" in crd["spec"]:
            names.setdefault(("apiextensions.k8s.io", "customresourcedefinitions"), []).append(crd.name)
    rules = [
        {"apiGroups": [group], "resources": [plural], "resourceNames": resource_names, "verbs": ["get", "patch"]}
        for (group, plural), resource_names in names.items()
    ]
    return _role_and_binding(release, "ClusterRole", f"{release.name}-webhooks", rules)


def _metrics_roles(release: Release) -> list[Unstructured]:
    """Return the role that access reviews need, and roles of readers, to be bound to Prometheus and to developers."""
    reviews = [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    return [
        *_role_and_binding(release, "ClusterRole", f"{release.name}-metrics-auth", reviews),
        _reader_role(release, "metrics-reader", "/metrics"),
        _reader_role(release, "debug-reader", "/debug/why", "/debug/why/*"),
    ]


def _reader_role(release: Release, suffix: str, *paths: str) -> Unstructured:
    rules = [{"nonResourceURLs": list(paths), "verbs": ["get"]}]
    return release.new_object("ClusterRole", f"{release.name}-{suffix}", api=_API, cluster=True, rules=rules)


def _role_and_binding(
    release: Release, kind: str, name: str, rules: list[dict[str, Any]], *, namespace: str = ""
) -> list[Unstructured]:
    """Return a role and its binding to the operator's service account."""
    cluster = kind == "ClusterRole"
    role = release.new_object(kind, name, api=_API, cluster=cluster, rules=rules)
    binding = release.new_object(
        f"{kind}Binding",
        name,
        api=_API,
        cluster=cluster,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": release.name, "namespace": release.namespace}],
    )
    for obj in (role, binding):
        if namespace:
            obj.metadata["namespace"] = namespace
    return [role, binding]
