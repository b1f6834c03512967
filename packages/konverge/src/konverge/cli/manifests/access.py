"""Access: who the operator is, and the least it must be allowed to do.

What its controllers declare is allowed where it works: everywhere by a ClusterRole, or in each of its namespaces by a
Role. Its lease, and the Secret with its certificate, are allowed by name in its own namespace.
"""

from __future__ import annotations

from typing import Any

from konverge.cli.manifests.release import Release
from konverge.controller import EVENTS, LEASES, rules_of
from konverge.objects import Unstructured

__all__ = ["access_of"]

_API = "rbac.authorization.k8s.io/v1"


def access_of(release: Release) -> list[Unstructured]:
    """Give the ServiceAccount, roles and bindings."""
    account = release.made("ServiceAccount", release.name, automountServiceAccountToken=False)
    granted = [account, *_everyday(release), *_own(release)]
    if release.operator.webhooks:
        granted += _bundles(release)
    return granted


def _everyday(release: Release) -> list[Unstructured]:
    """What the controllers do."""
    needed = set(release.operator.permissions()) - set(LEASES)
    if not release.namespaces:
        return _pair(release, "ClusterRole", release.name, rules_of(needed))
    found: list[Unstructured] = []
    for namespace in release.namespaces:
        found += _pair(release, "Role", release.name, rules_of(needed), namespace=namespace)
    return found


def _own(release: Release) -> list[Unstructured]:
    """What it does in its own namespace: its lease, its events about it, its certificate."""
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
    return _pair(release, "Role", f"{release.name}-own", rules, namespace=release.namespace)


def _bundles(release: Release) -> list[Unstructured]:
    """The objects whose caBundle it keeps up to date, by name."""
    names: dict[tuple[str, str], list[str]] = {}
    for one in release.webhook_configurations():
        plural = f"{one.kind.lower()}s"
        names.setdefault(("admissionregistration.k8s.io", plural), []).append(one.name)
    for crd in release.crds():
        if "conversion" in crd["spec"]:
            names.setdefault(("apiextensions.k8s.io", "customresourcedefinitions"), []).append(crd.name)
    rules = [
        {"apiGroups": [group], "resources": [plural], "resourceNames": found, "verbs": ["get", "patch"]}
        for (group, plural), found in names.items()
    ]
    return _pair(release, "ClusterRole", f"{release.name}-webhooks", rules)


def _pair(
    release: Release, kind: str, name: str, rules: list[dict[str, Any]], *, namespace: str = ""
) -> list[Unstructured]:
    """A role and the binding of the operator's account to it."""
    cluster = kind == "ClusterRole"
    role = release.made(kind, name, api=_API, cluster=cluster, rules=rules)
    binding = release.made(
        f"{kind}Binding",
        name,
        api=_API,
        cluster=cluster,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": release.name, "namespace": release.namespace}],
    )
    for one in (role, binding):
        if namespace:
            one.metadata["namespace"] = namespace
    return [role, binding]
