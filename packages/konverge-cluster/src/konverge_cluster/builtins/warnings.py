"""Warnings of the API server about accepted but inadvisable fields."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from konverge.objects.names import dns_label_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import quote

__all__ = [
    "claim_warnings",
    "driver_warnings",
    "node_warnings",
    "pod_name_warnings",
    "pod_warnings",
    "service_warnings",
    "workload_warnings",
]

Spec = dict[str, Any]

_BYTES: Final = ("memory", "ephemeral-storage")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DEPRECATED_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def workload_warnings(name: str) -> Iterator[str]:
    """Yield warnings about a name that becomes part of the names of pods."""
    return _name_warnings(name, "this is used in Pod names and hostnames")


def pod_name_warnings(name: str) -> Iterator[str]:
    return _name_warnings(name, "this is used in the Pod's hostname")


def _name_warnings(name: str, use: str) -> Iterator[str]:
    errors = dns_label_errors(name)
    if errors:
        text = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: {use}, {text}: [{' '.join(errors)}]"


def pod_warnings(pod: Spec, path: str) -> Iterator[str]:
    """Yield warnings about a pod or a pod template; `path` is the path of its spec."""
    spec: Spec = pod["spec"]
    for key in spec.get("nodeSelector", ()):
        if key in _DEPRECATED_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_DEPRECATED_LABELS[key]}"
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        if "labelSelector" not in constraint:
            where = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            yield f"{where}: a null labelSelector results in matching no pod"
    for index, volume in enumerate(spec.get("volumes", ())):
        for name, text in _DEPRECATED_VOLUMES.items():
            if name in volume:
                yield f"{path}.volumes[{index}].{'storageOS' if name == 'storageos' else name}: {text}"
    yield from _duplicate_warnings(spec.get("hostAliases", ()), "ip", f"{path}.hostAliases")
    yield from _duplicate_warnings(spec.get("imagePullSecrets", ()), "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(spec.get("imagePullSecrets", ())):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    annotations = _Annotations(pod, path)
    yield from annotations.seccomp_warnings(spec, _SECCOMP_POD)
    containers: list[tuple[Spec, str]] = [
        (container, f"{path}.{name}[{index}]")
        for name in _CONTAINER_LISTS
        for index, container in enumerate(spec.get(name) or [])
    ]
    for container, where in containers:
        yield from annotations.seccomp_warnings(container, f"{_SECCOMP_CONTAINER}{container['name']}")
        yield from _container_warnings(container, where)
    yield from _port_warnings(containers)
    yield from _port_name_warnings(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {text}"


class _Annotations:
    """The annotations of a pod or a pod template; `path` is the path of its spec."""

    def __init__(self, pod: Spec, path: str) -> None:
        self._annotations: Spec = pod["metadata"].get("annotations") or {}
        self._path = f"{path.removesuffix('spec')}metadata.annotations"

    def seccomp_warnings(self, owner: Spec, key: str) -> Iterator[str]:
        """Yield a warning if a seccomp annotation of a pod or of a container is used instead of the field."""
        if key in self._annotations and "seccompProfile" not in (owner.get("securityContext") or {}):
            yield f'{self._path}[{key}]: non-functional in v1.27+; use the "seccompProfile" field instead'


def _duplicate_warnings(items: Any, key: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield f"{path}[{index}].{key}: duplicate {key} {quote(value)}"
        seen.add(value)


def _container_warnings(container: Spec, path: str) -> Iterator[str]:
    for name in _BYTES:
        for kind in ("limits", "requests"):
            amount = container["resources"].get(kind, {}).get(name)
            yield from _fractional_byte_warnings(amount, f"{path}.resources.{kind}[{name}]")
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env", ())):
        name, value = variable["name"], variable.get("value", "")
        extends_previous = f"$({name})" in value and value != f"$({name})" and "valueFrom" not in variable
        if name in seen and not extends_previous:
            text = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path}.env[{index}]: {text}"
        seen.add(name)


def _fractional_byte_warnings(amount: str | None, path: str) -> Iterator[str]:
    if amount is not None and Quantity(amount).milli() % 1000:
        yield f"{path}: fractional byte value {quote(amount)} is invalid, must be an integer"


def _port_warnings(containers: list[tuple[Spec, str]]) -> Iterator[str]:
    taken: dict[tuple[int, str], list[tuple[str, Spec]]] = defaultdict(list)
    for container, path in containers:
        for index, port in enumerate(container.get("ports", ())):
            where = f"{path}.ports[{index}]"
            others = taken[port["containerPort"], port["protocol"]]
            for other, earlier in others:
                conflict = _port_conflict(port, earlier)
                if conflict:
                    yield f"{where}: {conflict} port definition with {other}"
            others.append((where, port))


def _port_conflict(port: Spec, other: Spec) -> str:
    (ip, number), (other_ip, other_number) = (
        (each.get("hostIP", ""), each.get("hostPort", 0)) for each in (port, other)
    )
    if (ip, number) == (other_ip, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and bool(ip) != bool(other_ip) else ""


def _port_name_warnings(containers: list[tuple[Spec, str]]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for container, path in containers:
        for index, port in enumerate(container.get("ports", ())):
            name, where = port.get("name", ""), f"{path}.ports[{index}]"
            if name in taken:
                rest = f"services and probes that select ports by name will use {taken[name]}"
                yield f"{where}: duplicate port name {quote(name)} with {taken[name]}, {rest}"
            elif name:
                taken[name] = where


def claim_warnings(spec: Spec, path: str) -> Iterator[str]:
    for kind in ("requests", "limits"):
        yield from _fractional_byte_warnings(
            spec["resources"].get(kind, {}).get("storage"), f"{path}.resources.{kind}[storage]"
        )


def driver_warnings(spec: Spec) -> Iterator[str]:
    if spec.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
            "set to true to prevent possible logging of tokens in volume attributes"
        )


def node_warnings(spec: Spec) -> Iterator[str]:
    if "configSource" in spec:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def service_warnings(service: Spec) -> Iterator[str]:
    spec = service["spec"]
    headless, external = spec.get("clusterIPs", [])[:1] == ["None"], spec.get("externalIPs")
    if headless:
        for name, is_set in (("loadBalancerIP", spec.get("loadBalancerIP")), ("externalIPs", external)):
            if is_set:
                yield f"spec.{name} is ignored for headless services"
        if spec["sessionAffinity"] != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    if external and not headless and spec["type"] != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec["type"] == "ExternalName" and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec["type"] != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
