"""The checks of the restricted level, in addition to the baseline: current practice for hardening pods."""

from __future__ import annotations

from typing import Final

from konverge_cluster.pod_security.baseline import has_user_namespace, is_allowed_seccomp, seccomp_profiles
from konverge_cluster.pod_security.violations import (
    Check,
    Document,
    Violation,
    containers,
    list_containers,
    plural,
    quote_all,
    security_context,
    setters_of,
)

__all__ = [
    "except_for_user_namespaces",
    "except_for_windows",
    "no_privilege_escalation",
    "restricted_capabilities",
    "restricted_volumes",
    "run_as_non_root",
    "run_as_user",
    "seccomp_profile_required",
]

_ALLOWED_VOLUMES: Final = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
    "secret",
}
_FORBIDDEN_VOLUMES: Final = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd"),
    *("flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk"),
    *("photonPersistentDisk", "portworxVolume", "scaleIO", "storageos"),
)


def except_for_windows(check: Check) -> Check:
    """Return a check that ignores Windows pods: the API does not let them set these fields."""

    def checked(metadata: Document, spec: Document) -> Violation | None:
        return None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)

    return checked


def except_for_user_namespaces(check: Check) -> Check:
    """Return a check that ignores pods with a user namespace of their own: root is nobody on the node."""

    def checked(metadata: Document, spec: Document) -> Violation | None:
        return None if has_user_namespace(spec) else check(metadata, spec)

    return checked


def no_privilege_escalation(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Require allowPrivilegeEscalation=false in every container."""
    names = [
        each["name"] for each in containers(spec) if security_context(each).get("allowPrivilegeEscalation") is not False
    ]
    if not names:
        return None
    detail = f"{list_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def restricted_capabilities(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Require that every container drops all capabilities, and adds at most NET_BIND_SERVICE."""
    keeping: list[str] = []
    adding: list[str] = []
    bad: set[str] = set()
    for container in containers(spec):
        given = security_context(container).get("capabilities") or {}
        if "ALL" not in (given.get("drop") or ()):
            keeping.append(container["name"])
        added = set(given.get("add") or ()) - {"NET_BIND_SERVICE"}
        if added:
            adding.append(container["name"])
        bad |= added
    details = []
    if keeping:
        details.append(f'{list_containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        forbidden = quote_all(sorted(bad))
        details.append(f"{list_containers(adding)} must not include {forbidden} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def restricted_volumes(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid volumes that reach beyond the pod without a PersistentVolume."""
    bad = {
        volume["name"]: next((kind for kind in _FORBIDDEN_VOLUMES if kind in volume), "unknown")
        for volume in spec.get("volumes") or ()
        if _ALLOWED_VOLUMES.isdisjoint(volume)
    }
    if not bad:
        return None
    kinds = sorted(set(bad.values()))
    verb = "uses" if len(bad) == 1 else "use"
    restricted = f"{plural('restricted volume type', len(kinds))} {quote_all(kinds)}"
    detail = f"{plural('volume', len(bad))} {quote_all(bad)} {verb} {restricted}"
    return Violation("restricted volume types", detail)


def run_as_non_root(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Require runAsNonRoot=true of the pod or of every container."""
    reason = "runAsNonRoot != true"
    who = setters_of(spec, lambda context: context.get("runAsNonRoot") is False)
    if who:
        return Violation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    if security_context(spec).get("runAsNonRoot"):
        return None
    names = [each["name"] for each in containers(spec) if security_context(each).get("runAsNonRoot") is None]
    if not names:
        return None
    return Violation(reason, f"pod or {list_containers(names)} must set securityContext.runAsNonRoot=true")


def run_as_user(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid the user root."""
    who = setters_of(spec, lambda context: context.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_profile_required(metadata: Document, spec: Document) -> Violation | None:
    """Require an allowed seccomp profile of the pod or of every container."""
    forbidden = seccomp_profiles(metadata, spec)
    if forbidden:
        return forbidden
    if is_allowed_seccomp(security_context(spec).get("seccompProfile") or {}):
        return None
    names = [each["name"] for each in containers(spec) if security_context(each).get("seccompProfile") is None]
    if not names:
        return None
    required = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {list_containers(names)} {required}")
