"""Validation of containers: names, images, ports, mounts, and which probes are allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, not_found, required, too_many, unsupported
from konverge_cluster.builtins.validation.environment import validate_environment, validate_environment_sources
from konverge_cluster.builtins.validation.probes import validate_lifecycle, validate_probes
from konverge_cluster.builtins.validation.resources import validate_container_resources
from konverge_cluster.builtins.validation.security import validate_container_security
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    port_name_errors,
    validate_dns_label,
    validate_enum,
    validate_name,
    validate_no_backsteps,
    validate_port_number,
    validate_relative_path,
)

__all__ = [
    "PodContext",
    "validate_containers",
    "validate_ephemeral_containers",
    "validate_image_whitespace",
    "validate_init_containers",
    "validate_pull_policy",
]

Container = dict[str, Any]

_PROBES_AND_HOOKS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_EPHEMERAL_FORBIDDEN: Final = (
    "ports",
    "resizePolicy",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "restartPolicy",
    "restartPolicyRules",
)
_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")


@dataclass(frozen=True, slots=True)
class PodContext:
    """Facts about the pod that the validation of its containers needs. `volumes` are the valid ones, by name."""

    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    claims: frozenset[str] = frozenset()
    grace: int | None = None
    host_users: bool = True
    restart_policy: str = "Always"


def validate_containers(containers: list[Container] | None, context: PodContext, path: str) -> FieldErrors:
    if not containers:
        yield required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _validate_container(container, context, where)
        if container["name"] in names:
            yield duplicate(f"{where}.name", container["name"])
        names.add(container["name"])
        if "lifecycle" in container:
            yield from validate_lifecycle(container["lifecycle"], context.grace, f"{where}.lifecycle")
        yield from validate_probes(container, context.grace, where)
        yield from _validate_restart_policy(container, where)
    yield from _validate_host_ports(containers, path)


def validate_init_containers(
    containers: Iterable[Container], main_containers: Iterable[Container], context: PodContext, path: str
) -> FieldErrors:
    names = {each["name"] for each in main_containers}
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _validate_container(container, context, where)
        yield from _validate_restart_policy(container, where)
        if container["name"] in names:
            yield duplicate(f"{where}.name", container["name"])
        elif container["name"]:
            names.add(container["name"])
        # The real server checks each init container on its own, with the index 0.
        yield from _validate_host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            if "lifecycle" in container:
                yield from validate_lifecycle(container["lifecycle"], context.grace, f"{where}.lifecycle")
            yield from validate_probes(container, context.grace, where)
        else:
            for name in _PROBES_AND_HOOKS:
                if name in container:
                    yield forbidden(f"{where}.{name}", _ONLY_SIDECARS)


def validate_ephemeral_containers(
    containers: Iterable[Container], others: Iterable[Container], context: PodContext, path: str
) -> FieldErrors:
    targets = {each["name"] for each in others}
    names = set(targets)
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _validate_container(container, context, where)
        yield from validate_image_whitespace(container, where)
        if container["name"] in names:
            yield duplicate(f"{where}.name", container["name"])
        names.add(container["name"])
        target = container.get("targetContainerName")
        if target and target not in targets:
            yield not_found(f"{where}.targetContainerName", target)
        for name in _EPHEMERAL_FORBIDDEN:
            if name in container:
                yield forbidden(f"{where}.{name}", _NOT_EPHEMERAL)
        if container["resources"]:
            yield forbidden(f"{where}.resources", _NOT_EPHEMERAL)
        for at, mount in enumerate(container.get("volumeMounts", ())):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden(f"{where}.volumeMounts[{at}].{name}", _NOT_EPHEMERAL)


def _validate_container(container: Container, context: PodContext, path: str) -> FieldErrors:
    if not container["name"]:
        yield required(f"{path}.name")
    else:
        yield from validate_dns_label(container["name"], f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    policies = ("File", "FallbackToLogsOnError")
    yield from validate_enum(container["terminationMessagePolicy"], policies, f"{path}.terminationMessagePolicy")
    yield from _validate_ports(container.get("ports", ()), f"{path}.ports")
    yield from validate_environment(container.get("env", ()), f"{path}.env")
    yield from validate_environment_sources(container.get("envFrom", ()), f"{path}.envFrom")
    yield from _validate_mounts(container, context, f"{path}.volumeMounts")
    yield from _validate_devices(container, context, f"{path}.volumeDevices")
    yield from validate_pull_policy(container["imagePullPolicy"], f"{path}.imagePullPolicy")
    yield from validate_container_resources(container["resources"], context.claims, f"{path}.resources")
    yield from _validate_resize_policies(container.get("resizePolicy", ()), context, f"{path}.resizePolicy")
    if "securityContext" in container:
        yield from validate_container_security(
            container["securityContext"], f"{path}.securityContext", host_users=context.host_users
        )


def validate_pull_policy(policy: str, path: str) -> FieldErrors:
    return validate_enum(policy, ("Always", "IfNotPresent", "Never"), path)


def validate_image_whitespace(container: Container, path: str) -> FieldErrors:
    """Reject surrounding whitespace in an image name; only pods are checked, not templates."""
    image = container.get("image", "")
    if image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _validate_ports(ports: Iterable[dict[str, Any]], path: str) -> FieldErrors:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        name = port.get("name")
        if name:
            errors = list(validate_name(name, port_name_errors, f"{where}.name"))
            yield from errors
            if not errors and name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
        if not port["containerPort"]:
            yield required(f"{where}.containerPort")
        else:
            yield from validate_port_number(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            yield from validate_port_number(port["hostPort"], f"{where}.hostPort")
        yield from validate_enum(port["protocol"], ("SCTP", "TCP", "UDP"), f"{where}.protocol")


def _validate_host_ports(containers: list[Container], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports", ())):
            if port.get("hostPort"):
                text = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
                if text in seen:
                    yield duplicate(f"{path}[{index}].ports[{at}].hostPort", text)
                seen.add(text)


def _validate_mounts(container: Container, context: PodContext, path: str) -> FieldErrors:
    devices = {each["name"]: each["devicePath"] for each in container.get("volumeDevices", ())}
    points: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        where = f"{path}[{index}]"
        name, point = mount["name"], mount["mountPath"]
        if not name:
            yield required(f"{where}.name")
        if name not in context.volumes:
            yield not_found(f"{where}.name", name)
        if not point:
            yield required(f"{where}.mountPath")
        if point in points:
            yield invalid(f"{where}.mountPath", point, "must be unique")
        points.add(point)
        if name in devices:
            yield invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if point in devices.values():
            yield invalid(f"{where}.mountPath", point, "must not already exist as a path in volumeDevices")
        yield from _validate_mount_details(mount, container, path, where)


def _validate_mount_details(mount: dict[str, Any], container: Container, path: str, where: str) -> FieldErrors:
    # The real server omits the index from these paths.
    if mount.get("subPath"):
        yield from validate_relative_path(mount["subPath"], f"{path}.subPath")
    if mount.get("subPathExpr"):
        if mount.get("subPath"):
            text = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{where}.subPathExpr", mount["subPathExpr"], text)
        yield from validate_relative_path(mount["subPathExpr"], f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        allowed = ("Bidirectional", "HostToContainer", "None")
        if propagation not in allowed:
            yield unsupported(f"{path}.mountPropagation", propagation, allowed)
        if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{path}.mountPropagation", text)
    yield from _validate_recursive_read_only(mount, f"{path}.recursiveReadOnly")


def _validate_recursive_read_only(mount: dict[str, Any], path: str) -> FieldErrors:
    choice, allowed = mount.get("recursiveReadOnly"), ("Disabled", "Enabled", "IfPossible")
    if choice in (None, "Disabled"):
        return
    if choice not in allowed:
        yield unsupported(path, choice, allowed)
        return
    if not mount.get("readOnly"):
        yield forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation", "None") != "None":
        yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


def _validate_devices(container: Container, context: PodContext, path: str) -> FieldErrors:
    mounts = {each["name"]: each["mountPath"] for each in container.get("volumeMounts", ())}
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices", ())):
        where = f"{path}[{index}]"
        name, place = device["name"], device["devicePath"]
        if not name:
            yield required(f"{where}.name")
        if name in names:
            yield invalid(f"{where}.name", name, "must be unique")
        yield from _validate_device_volume(name, context.volumes.get(name), f"{where}.name")
        if not place:
            yield required(f"{where}.devicePath")
        if place in places:
            yield invalid(f"{where}.devicePath", place, "must be unique")
        if place and list(validate_no_backsteps(place, where)):
            yield invalid(f"{where}.devicePath", place, "can not contain backsteps ('..')")
        else:
            places.add(place)
        if name in mounts:
            yield invalid(f"{where}.name", name, "must not already exist in volumeMounts")
        if place in mounts.values():
            yield invalid(f"{where}.devicePath", place, "must not already exist as a path in volumeMounts")
        names.add(name)


def _validate_device_volume(name: str, volume: dict[str, Any] | None, path: str) -> FieldErrors:
    if volume is None:
        yield not_found(path, name)
    elif not any(source in volume for source in _BLOCK_SOURCES):
        text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid(path, name, text)


def _validate_resize_policies(policies: Iterable[dict[str, Any]], context: PodContext, path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy["resourceName"], policy["restartPolicy"]
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)
        yield from validate_enum(name, ("cpu", "memory"), path)
        yield from validate_enum(restart, ("NotRequired", "RestartContainer"), path)
        if context.restart_policy == "Never" and restart != "NotRequired":
            yield invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _validate_restart_policy(container: Container, path: str) -> FieldErrors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", [])
    if policy is None:
        if rules:
            yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in ("Always", "Never", "OnFailure"):
        yield unsupported(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        where = f"{path}.restartPolicyRules[{index}]"
        action = rule.get("action", "")
        if action not in ("Restart", "RestartAllContainers"):
            yield unsupported(f"{where}.action", action, ("Restart", "RestartAllContainers"))
        yield from _validate_exit_codes(rule.get("exitCodes"), f"{where}.exitCodes")


def _validate_exit_codes(codes: dict[str, Any] | None, path: str) -> FieldErrors:
    if codes is None:
        yield required(path, "must be specified")
        return
    operator = codes.get("operator", "")
    if operator not in ("In", "NotIn"):
        yield unsupported(f"{path}.operator", operator, ("In", "NotIn"))
    if len(codes.get("values", ())) > 255:
        yield too_many(f"{path}.values", len(codes["values"]), 255)
