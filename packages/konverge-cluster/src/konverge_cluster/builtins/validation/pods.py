"""Validation of pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, required, too_long, unsupported
from konverge_cluster.builtins.validation.containers import (
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_image_whitespace,
    validate_init_containers,
)
from konverge_cluster.builtins.validation.labels import validate_annotation_values, validate_labels
from konverge_cluster.builtins.validation.resources import (
    validate_container_resources,
    validate_pod_resource_name,
    validate_resource_requirements,
)
from konverge_cluster.builtins.validation.scheduling import (
    validate_affinity,
    validate_spread_constraints,
    validate_tolerations,
)
from konverge_cluster.builtins.validation.security import validate_pod_security
from konverge_cluster.builtins.validation.values import (
    MAX_INT32,
    FieldErrors,
    validate_dns_label,
    validate_dns_subdomain,
    validate_enum,
    validate_ip,
    validate_qualified_name,
    validate_range,
)
from konverge_cluster.builtins.validation.volumes import validate_volumes

__all__ = ["validate_pod", "validate_pod_create", "validate_pod_spec", "validate_pod_template"]

Spec = dict[str, Any]

_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMED_FIELDS: Final = ("serviceAccountName", "nodeName")


def validate_pod_create(pod: dict[str, Any]) -> FieldErrors:
    """Validate a new pod."""
    yield from validate_pod(pod)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def validate_pod(pod: dict[str, Any]) -> FieldErrors:
    """Validate a new or updated pod."""
    spec = pod["spec"]
    yield from validate_pod_spec(spec, "spec", name=pod["metadata"].get("name", ""), is_pod=True)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes", ())):
            for at, source in enumerate(volume.get("projected", {}).get("sources") or ()):
                if "serviceAccountToken" in source:
                    path = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                    yield forbidden(path, "must not be specified when serviceAccountName is not set")
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from validate_image_whitespace(container, f"spec.{name}[{index}]")


def validate_pod_template(template: dict[str, Any], path: str) -> FieldErrors:
    """Validate the pod template of a workload."""
    metadata = template["metadata"]
    yield from validate_labels(metadata.get("labels"), f"{path}.labels")
    yield from validate_annotation_values(metadata.get("annotations"), f"{path}.annotations")
    yield from validate_pod_spec(template["spec"], f"{path}.spec")
    if template["spec"].get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_pod_spec(spec: Spec, path: str, *, name: str = "", is_pod: bool = False) -> FieldErrors:
    volumes, errors = validate_volumes(spec.get("volumes", ()), f"{path}.volumes", pod_name=name, is_pod=is_pod)
    yield from errors
    yield from _validate_resource_claims(spec.get("resourceClaims", ()), f"{path}.resourceClaims")
    context = PodContext(
        volumes=volumes,
        claims=frozenset(claim["name"] for claim in spec.get("resourceClaims", ())),
        grace=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers", True),
        restart_policy=spec["restartPolicy"],
    )
    regular = spec["containers"] or []
    init = spec.get("initContainers", [])
    yield from validate_containers(regular, context, f"{path}.containers")
    yield from validate_init_containers(init, regular, context, f"{path}.initContainers")
    ephemeral = spec.get("ephemeralContainers", ())
    yield from validate_ephemeral_containers(ephemeral, [*regular, *init], context, f"{path}.ephemeralContainers")
    if "resources" in spec:
        yield from _validate_pod_resources(spec["resources"], context, f"{path}.resources")
    yield from _validate_host_network(spec, path, is_pod=is_pod)
    yield from validate_enum(spec["restartPolicy"], ("Always", "OnFailure", "Never"), f"{path}.restartPolicy")
    yield from validate_enum(spec["dnsPolicy"], _DNS_POLICIES, f"{path}.dnsPolicy")
    yield from validate_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from validate_pod_security(spec.get("securityContext", {}), spec, f"{path}.securityContext")
    yield from validate_affinity(spec.get("affinity", {}), f"{path}.affinity")
    yield from _validate_dns(spec, f"{path}.dnsConfig")
    yield from _validate_scheduling_gates(spec, path)
    yield from validate_spread_constraints(
        spec.get("topologySpreadConstraints", []), f"{path}.topologySpreadConstraints"
    )
    yield from _validate_host_users(spec, path)
    yield from _validate_hostname_override(spec, path)
    yield from _validate_simple_fields(spec, path)


def _validate_resource_claims(claims: Iterable[dict[str, Any]], path: str) -> FieldErrors:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim["name"]:
            yield required(f"{where}.name")
        elif claim["name"] in names:
            yield duplicate(f"{where}.name", claim["name"])
        else:
            yield from validate_dns_label(claim["name"], f"{where}.name")
            names.add(claim["name"])
        yield from _validate_claim_source(claim, where)


def _validate_claim_source(claim: dict[str, Any], path: str) -> FieldErrors:
    names = ("resourceClaimName", "resourceClaimTemplateName")
    sources = [name for name in names if name in claim]
    if len(sources) != 1:
        value = {"Name": claim["name"], "ResourceClaimName": claim.get(names[0])}
        listed = " or ".join if sources else ", ".join
        text = "at most one of {} may be specified" if sources else "must specify one of: {}"
        value["ResourceClaimTemplateName"] = claim.get(names[1])
        yield invalid(path, value, text.format(listed(f"`{name}`" for name in names)))
    for name in sources:
        yield from validate_dns_subdomain(claim[name], f"{path}.{name}")


def _validate_pod_resources(resources: dict[str, Any], context: PodContext, path: str) -> FieldErrors:
    if "claims" in resources:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from validate_resource_requirements(resources, validate_pod_resource_name, context.claims, path)


def _validate_host_network(spec: Spec, path: str, *, is_pod: bool) -> FieldErrors:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec["containers"] or ()):
        for at, port in enumerate(container.get("ports", ())):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port["containerPort"]:
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}.containers[{index}].ports[{at}].hostPort", host, text)


def _validate_dns(spec: Spec, path: str) -> FieldErrors:
    config = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", text)
            return
    servers, searches = ((config or {}).get(name, []) for name in ("nameservers", "searches"))
    if len(servers) > 3:
        yield invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from validate_ip(server, f"{path}.nameservers[{index}]")
    if len(searches) > 32:
        yield invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, text)
    for index, option in enumerate((config or {}).get("options", ())):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _validate_scheduling_gates(spec: Spec, path: str) -> FieldErrors:
    for index, gate in enumerate(spec.get("readinessGates", ())):
        yield from validate_qualified_name(gate["conditionType"], f"{path}.readinessGates[{index}].conditionType")
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        where = f"{path}.schedulingGates[{index}]"
        yield from validate_qualified_name(gate["name"], where)
        if gate["name"] in seen:
            yield duplicate(where, gate["name"])
        seen.add(gate["name"])


def _validate_host_users(spec: Spec, path: str) -> FieldErrors:
    if spec.get("hostUsers", True):
        return
    for name, go_name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield forbidden(f"{path}.{go_name}", "when `hostUsers` is false")


def _validate_hostname_override(spec: Spec, path: str) -> FieldErrors:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    where = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield forbidden(where, f"may not be specified when {field} is true")
    if len(name) > 64:
        yield too_long(where, 64)
    yield from validate_dns_subdomain(name, where)


def _validate_simple_fields(spec: Spec, path: str) -> FieldErrors:
    for name in _NAMED_FIELDS:
        if spec.get(name):
            yield from validate_dns_subdomain(spec[name], f"{path}.{name}")
    yield from validate_range(spec.get("activeDeadlineSeconds"), 1, MAX_INT32, f"{path}.activeDeadlineSeconds")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from validate_dns_label(spec[name], f"{path}.{name}")
    yield from validate_tolerations(spec.get("tolerations", ()), f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from validate_ip(alias["ip"], f"{path}.hostAliases[{index}].ip")
        for at, host in enumerate(alias.get("hostnames", ())):
            yield from validate_dns_subdomain(host, f"{path}.hostAliases[{index}].hostnames[{at}]")
    if spec.get("priorityClassName"):
        yield from validate_dns_subdomain(spec["priorityClassName"], f"{path}.priorityClassName")
    if "runtimeClassName" in spec:
        yield from validate_dns_subdomain(spec["runtimeClassName"], f"{path}.runtimeClassName")
    if "preemptionPolicy" in spec:
        yield from validate_enum(
            spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"), f"{path}.preemptionPolicy"
        )
    if "overhead" in spec:
        yield from validate_container_resources({"limits": spec["overhead"]}, frozenset(), f"{path}.overhead")
    yield from _validate_operating_system(spec, path)


def _validate_operating_system(spec: Spec, path: str) -> FieldErrors:
    if "os" not in spec:
        return
    name = spec["os"].get("name")
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield unsupported(f"{path}.os", name, ("linux", "windows"))
