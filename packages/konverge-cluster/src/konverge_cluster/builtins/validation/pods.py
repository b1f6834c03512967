"""Pods and pod templates, as wholes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, required, too_long, unsupported
from konverge_cluster.builtins.validation.containers import (
    PodFacts,
    containers,
    ephemeral_containers,
    image_whitespace,
    init_containers,
)
from konverge_cluster.builtins.validation.labels import annotation_values, labels
from konverge_cluster.builtins.validation.resources import (
    container_resources,
    pod_resource_name,
    resource_requirements,
)
from konverge_cluster.builtins.validation.scheduling import affinity, spread_constraints, tolerations
from konverge_cluster.builtins.validation.security import pod_security
from konverge_cluster.builtins.validation.values import (
    MAX_INT32,
    Problems,
    between,
    chosen_from,
    dns_label,
    dns_subdomain,
    ip_address,
    qualified_name,
)
from konverge_cluster.builtins.validation.volumes import volumes

__all__ = ["new_pod", "pod", "pod_spec", "pod_template"]

Spec = dict[str, Any]

_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMED_FIELDS: Final = ("serviceAccountName", "nodeName")


def new_pod(found: dict[str, Any]) -> Problems:
    """A pod that is about to be created."""
    yield from pod(found)
    spec = found["spec"]
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def pod(found: dict[str, Any]) -> Problems:
    """A pod, new or changed."""
    spec = found["spec"]
    yield from pod_spec(spec, "spec", name=found["metadata"].get("name", ""), is_pod=True)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes", ())):
            for at, source in enumerate(volume.get("projected", {}).get("sources") or ()):
                if "serviceAccountToken" in source:
                    path = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                    yield forbidden(path, "must not be specified when serviceAccountName is not set")
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from image_whitespace(container, f"spec.{name}[{index}]")


def pod_template(template: dict[str, Any], path: str) -> Problems:
    """The template of a workload."""
    metadata = template["metadata"]
    yield from labels(metadata.get("labels"), f"{path}.labels")
    yield from annotation_values(metadata.get("annotations"), f"{path}.annotations")
    yield from pod_spec(template["spec"], f"{path}.spec")
    if template["spec"].get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_spec(spec: Spec, path: str, *, name: str = "", is_pod: bool = False) -> Problems:
    sound, wrong = volumes(spec.get("volumes", ()), f"{path}.volumes", pod_name=name, is_pod=is_pod)
    yield from wrong
    yield from _resource_claims(spec.get("resourceClaims", ()), f"{path}.resourceClaims")
    facts = PodFacts(
        volumes=sound,
        claims=frozenset(claim["name"] for claim in spec.get("resourceClaims", ())),
        grace=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers", True),
        restart_policy=spec["restartPolicy"],
    )
    regular = spec["containers"] or []
    init = spec.get("initContainers", [])
    yield from containers(regular, facts, f"{path}.containers")
    yield from init_containers(init, regular, facts, f"{path}.initContainers")
    ephemeral = spec.get("ephemeralContainers", ())
    yield from ephemeral_containers(ephemeral, [*regular, *init], facts, f"{path}.ephemeralContainers")
    if "resources" in spec:
        yield from _pod_resources(spec["resources"], facts, f"{path}.resources")
    yield from _host_network(spec, path, is_pod=is_pod)
    yield from chosen_from(spec["restartPolicy"], ("Always", "OnFailure", "Never"), f"{path}.restartPolicy")
    yield from chosen_from(spec["dnsPolicy"], _DNS_POLICIES, f"{path}.dnsPolicy")
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from pod_security(spec.get("securityContext", {}), spec, f"{path}.securityContext")
    yield from affinity(spec.get("affinity", {}), f"{path}.affinity")
    yield from _dns(spec, f"{path}.dnsConfig")
    yield from _gates(spec, path)
    yield from spread_constraints(spec.get("topologySpreadConstraints", []), f"{path}.topologySpreadConstraints")
    yield from _host_users(spec, path)
    yield from _hostname_override(spec, path)
    yield from _scalars(spec, path)


def _resource_claims(claims: Iterable[dict[str, Any]], path: str) -> Problems:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim["name"]:
            yield required(f"{where}.name")
        elif claim["name"] in names:
            yield duplicate(f"{where}.name", claim["name"])
        else:
            yield from dns_label(claim["name"], f"{where}.name")
            names.add(claim["name"])
        yield from _claim_source(claim, where)


def _claim_source(claim: dict[str, Any], path: str) -> Problems:
    names = ("resourceClaimName", "resourceClaimTemplateName")
    given = [name for name in names if name in claim]
    if len(given) != 1:
        shown = {"Name": claim["name"], "ResourceClaimName": claim.get(names[0])}
        listed = " or ".join if given else ", ".join
        text = "at most one of {} may be specified" if given else "must specify one of: {}"
        shown["ResourceClaimTemplateName"] = claim.get(names[1])
        yield invalid(path, shown, text.format(listed(f"`{name}`" for name in names)))
    for name in given:
        yield from dns_subdomain(claim[name], f"{path}.{name}")


def _pod_resources(resources: dict[str, Any], facts: PodFacts, path: str) -> Problems:
    if "claims" in resources:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from resource_requirements(resources, pod_resource_name, facts.claims, path)


def _host_network(spec: Spec, path: str, *, is_pod: bool) -> Problems:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec["containers"] or ()):
        for at, port in enumerate(container.get("ports", ())):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port["containerPort"]:
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}.containers[{index}].ports[{at}].hostPort", host, text)


def _dns(spec: Spec, path: str) -> Problems:
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
        yield from ip_address(server, f"{path}.nameservers[{index}]")
    if len(searches) > 32:
        yield invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, text)
    for index, option in enumerate((config or {}).get("options", ())):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _gates(spec: Spec, path: str) -> Problems:
    for index, gate in enumerate(spec.get("readinessGates", ())):
        yield from qualified_name(gate["conditionType"], f"{path}.readinessGates[{index}].conditionType")
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        where = f"{path}.schedulingGates[{index}]"
        yield from qualified_name(gate["name"], where)
        if gate["name"] in seen:
            yield duplicate(where, gate["name"])
        seen.add(gate["name"])


def _host_users(spec: Spec, path: str) -> Problems:
    if spec.get("hostUsers", True):
        return
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield forbidden(f"{path}.{shown}", "when `hostUsers` is false")


def _hostname_override(spec: Spec, path: str) -> Problems:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    where = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield forbidden(where, f"may not be specified when {field} is true")
    if len(name) > 64:
        yield too_long(where, 64)
    yield from dns_subdomain(name, where)


def _scalars(spec: Spec, path: str) -> Problems:
    for name in _NAMED_FIELDS:
        if spec.get(name):
            yield from dns_subdomain(spec[name], f"{path}.{name}")
    yield from between(spec.get("activeDeadlineSeconds"), 1, MAX_INT32, f"{path}.activeDeadlineSeconds")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from dns_label(spec[name], f"{path}.{name}")
    yield from tolerations(spec.get("tolerations", ()), f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from ip_address(alias["ip"], f"{path}.hostAliases[{index}].ip")
        for at, host in enumerate(alias.get("hostnames", ())):
            yield from dns_subdomain(host, f"{path}.hostAliases[{index}].hostnames[{at}]")
    if spec.get("priorityClassName"):
        yield from dns_subdomain(spec["priorityClassName"], f"{path}.priorityClassName")
    if "runtimeClassName" in spec:
        yield from dns_subdomain(spec["runtimeClassName"], f"{path}.runtimeClassName")
    if "preemptionPolicy" in spec:
        yield from chosen_from(spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"), f"{path}.preemptionPolicy")
    if "overhead" in spec:
        yield from container_resources({"limits": spec["overhead"]}, frozenset(), f"{path}.overhead")
    yield from _operating_system(spec, path)


def _operating_system(spec: Spec, path: str) -> Problems:
    if "os" not in spec:
        return
    name = spec["os"].get("name")
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield unsupported(f"{path}.os", name, ("linux", "windows"))
