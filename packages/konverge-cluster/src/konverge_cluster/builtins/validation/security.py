"""Validation of security contexts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api.field_errors import duplicate, invalid, required, unsupported
from konverge_cluster.builtins.validation.values import (
    MAX_INT32,
    FieldErrors,
    validate_range,
    validate_relative_path,
)

__all__ = ["validate_container_security", "validate_pod_security"]

_SYSCTL: Final = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SWAP_SEPARATORS: Final = str.maketrans("./", "/.")
_IPC_SYSCTLS: Final = {
    *("kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm"),
    *("kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"),
}
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")


def validate_pod_security(context: dict[str, Any], spec: dict[str, Any], path: str) -> FieldErrors:
    """Validate the security context of a pod; some related fields are in the pod spec."""
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from validate_range(context.get(name), 0, MAX_INT32, f"{path}.{name}")
    for index, group in enumerate(context.get("supplementalGroups", ())):
        yield from validate_range(group, 0, MAX_INT32, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, text)
    yield from _validate_sysctls(context.get("sysctls", ()), spec, f"{path}.sysctls")
    yield from _validate_enum(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    yield from _validate_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from _validate_app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    yield from _validate_enum(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    yield from _validate_enum(context, "seLinuxChangePolicy", ("Recursive",), path)


def _validate_enum(context: dict[str, Any], name: str, allowed: tuple[str, ...], path: str) -> FieldErrors:
    if name in context and context[name] not in allowed:
        yield unsupported(f"{path}.{name}", context[name], allowed)


def validate_container_security(context: dict[str, Any], path: str, *, host_users: bool) -> FieldErrors:
    for name in ("runAsUser", "runAsGroup"):
        yield from validate_range(context.get(name), 0, MAX_INT32, f"{path}.{name}")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield unsupported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            yield invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _validate_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        yield from _validate_privileges(context, path)
    yield from _validate_app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _validate_privileges(context: dict[str, Any], path: str) -> FieldErrors:
    text = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        yield invalid(path, _internal(context), f"{text} `privileged` to true")
    if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
        yield invalid(path, _internal(context), f"{text} `capabilities.Add` CAP_SYS_ADMIN")


def _internal(context: dict[str, Any]) -> dict[str, Any]:
    """Return a security context as error messages print it: all fields, with their Go names."""
    capabilities = context.get("capabilities")
    return {
        "Capabilities": capabilities and {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")},
        "Privileged": context.get("privileged"),
        "SELinuxOptions": context.get("seLinuxOptions"),
        "WindowsOptions": context.get("windowsOptions"),
        "RunAsUser": context.get("runAsUser"),
        "RunAsGroup": context.get("runAsGroup"),
        "RunAsNonRoot": context.get("runAsNonRoot"),
        "ReadOnlyRootFilesystem": context.get("readOnlyRootFilesystem"),
        "AllowPrivilegeEscalation": context.get("allowPrivilegeEscalation"),
        "ProcMount": context.get("procMount"),
        "SeccompProfile": context.get("seccompProfile"),
        "AppArmorProfile": context.get("appArmorProfile"),
    }


def _validate_sysctls(sysctls: Iterable[dict[str, Any]], spec: dict[str, Any], path: str) -> FieldErrors:
    names: set[str] = set()
    for index, each in enumerate(sysctls):
        name, where = each["name"], f"{path}[{index}].name"
        if not name:
            yield required(where)
        elif len(name) > 253 or not re.fullmatch(_SYSCTL, name):
            yield invalid(where, name, f"must have at most 253 characters and match regex ^{_SYSCTL}$")
        elif name in names:
            yield duplicate(where, name)
        shared = _namespace_field(name)
        if spec.get(shared):
            yield invalid(where, name, f"may not be specified when '{shared}' is true")
        names.add(name)


def _namespace_field(sysctl: str) -> str:
    """Return the field that shares the Linux namespace of a kernel parameter with the node; "" if there is none."""
    name = sysctl.translate(_SWAP_SEPARATORS) if "/" in sysctl.partition(".")[0] else sysctl
    name = name.partition("*")[0]
    if name.startswith("net."):
        return "hostNetwork"
    return "hostIPC" if name in _IPC_SYSCTLS or name.startswith("fs.mqueue.") else ""


def _validate_seccomp(profile: dict[str, Any] | None, path: str) -> FieldErrors:
    if profile is None:
        return
    kind, localhost_profile = profile["type"], profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{path}.type", kind, _PROFILES)
    if kind == "Localhost":
        if localhost_profile is None:
            yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            yield from validate_relative_path(localhost_profile, f"{path}.localhostProfile")
    elif localhost_profile is not None:
        value = {"Type": kind, "LocalhostProfile": localhost_profile}
        yield invalid(f"{path}.localhostProfile", value, "can only be set when seccomp type is Localhost")


def _validate_app_armor(profile: dict[str, Any] | None, path: str) -> FieldErrors:
    if profile is None:
        return
    kind, localhost_profile = profile["type"], profile.get("localhostProfile")
    if kind == "Localhost":
        if localhost_profile is None or localhost_profile == "":
            yield required(f"{path}.localhostProfile", "must be set when AppArmor type is Localhost")
        elif localhost_profile != localhost_profile.strip():
            yield invalid(f"{path}.localhostProfile", localhost_profile, "must not be padded with whitespace")
    elif kind in _PROFILES:
        if localhost_profile is not None:
            yield invalid(
                f"{path}.localhostProfile", localhost_profile, "can only be set when AppArmor type is Localhost"
            )
    elif not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        yield unsupported(f"{path}.type", kind, _PROFILES)
