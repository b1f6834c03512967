"""The checks of the baseline level: nothing that is known to escalate privileges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from konverge_cluster.api.field_errors import quote
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
    "app_armor_profiles",
    "capabilities",
    "has_user_namespace",
    "host_namespaces",
    "host_path_volumes",
    "host_ports",
    "hosts_of_handlers",
    "is_allowed_seccomp",
    "privileged",
    "proc_mount",
    "se_linux_options",
    "seccomp_annotations",
    "seccomp_profiles",
    "sysctls",
    "windows_host_process",
]

_APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DEFAULT_CAPABILITIES: Final = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
_ALLOWED_PROFILES: Final = ("RuntimeDefault", "Localhost")


def _values_of(spec: Document, values: Callable[[Document], list[str]]) -> tuple[list[str], list[str]]:
    """Return the names of the containers with forbidden values, and these values in order, each once."""
    found = {str(each["name"]): values(each) for each in containers(spec)}
    names = [name for name, forbidden in found.items() if forbidden]
    return names, sorted({value for forbidden in found.values() for value in forbidden})


def app_armor_profiles(metadata: Document, spec: Document) -> Violation | None:
    """Forbid AppArmor profiles other than those of the runtime and of the node."""
    bad: set[str] = set()

    def is_forbidden(context: Document) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in _ALLOWED_PROFILES:
            return False
        bad.add(profile.get("type", ""))
        return True

    who = setters_of(spec, is_forbidden)
    annotations = sorted(_app_armor_annotations(metadata.get("annotations") or {}))
    if annotations:
        who = " and ".join([*([who] if who else ()), plural("annotation", len(annotations))])
    if not who:
        return None
    values = [*sorted(bad), *annotations]
    detail = f"{who} must not set AppArmor profile type to {quote_all(values)}"
    return Violation(plural("forbidden AppArmor profile", len(values)), detail)


def _app_armor_annotations(annotations: dict[str, str]) -> Iterator[str]:
    for key, value in annotations.items():
        allowed = value in ("", "runtime/default") or value.startswith("localhost/")
        if key.startswith(_APP_ARMOR_ANNOTATION) and not allowed:
            yield f"{key}={quote(value)}"


def capabilities(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid capabilities beyond the default ones of container runtimes."""

    def added(container: Document) -> list[str]:
        names = (security_context(container).get("capabilities") or {}).get("add") or ()
        return [name for name in names if name not in _DEFAULT_CAPABILITIES]

    names, bad = _values_of(spec, added)
    if not names:
        return None
    detail = f"{list_containers(names)} must not include {quote_all(bad)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def host_namespaces(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid the network, process and IPC namespaces of the node."""
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid volumes with a path of the node."""
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{plural('volume', len(names))} {quote_all(names)}") if names else None


def host_ports(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid ports of the node."""

    def ports(container: Document) -> list[str]:
        return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]

    names, bad = _values_of(spec, ports)
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    return Violation("hostPort", f"{list_containers(names)} {verb} {plural('hostPort', len(bad))} {', '.join(bad)}")


def hosts_of_handlers(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid hosts in probes and lifecycle handlers: the kubelet would send requests to them."""
    names, bad = _values_of(spec, _handler_hosts)
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    hosts = plural("probe or lifecycle host", len(bad))
    return Violation("probe or lifecycle host", f"{list_containers(sorted(names))} {verb} {hosts} {quote_all(bad)}")


def _handler_hosts(container: Document) -> list[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers: list[Any] = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(name) for name in ("postStart", "preStop")]
    actions = [handler.get(name) for handler in handlers if handler for name in ("httpGet", "tcpSocket")]
    return [action["host"] for action in actions if action and action.get("host")]


def privileged(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid privileged containers."""
    names = [each["name"] for each in containers(spec) if security_context(each).get("privileged")]
    if not names:
        return None
    return Violation("privileged", f"{list_containers(names)} must not set securityContext.privileged=true")


def proc_mount(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid an unmasked /proc."""

    def mounts(container: Document) -> list[str]:
        value = security_context(container).get("procMount")
        return [] if value in (None, "Default") else [str(value)]

    names, bad = _values_of(spec, mounts)
    if not names:
        return None
    detail = f"{list_containers(names)} must not set securityContext.procMount to {quote_all(bad)}"
    return Violation("procMount", detail)


def has_user_namespace(spec: Document) -> bool:
    """Report whether a pod runs in a user namespace of its own."""
    return spec.get("hostUsers") is False


def se_linux_options(*allowed_types: str) -> Check:
    """Return the check that forbids SELinux users, roles, and types other than these."""

    def check(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
        types: set[str] = set()
        other: set[str] = set()

        def is_forbidden(context: Document) -> bool:
            options = context.get("seLinuxOptions") or {}
            named = {name for name in ("user", "role") if options.get(name)}
            bad = {options["type"]} if options.get("type") and options["type"] not in allowed_types else set()
            types.update(bad)
            other.update(named)
            return bool(bad or named)

        who = setters_of(spec, is_forbidden)
        if not who:
            return None
        found = [f"{plural('type', len(types))} {quote_all(sorted(types))}"] if types else []
        found += [f"{name} may not be set" for name in ("user", "role") if name in other]
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(found)}")

    return check


def seccomp_annotations(metadata: Document, spec: Document) -> Violation | None:
    """Forbid seccomp annotations other than those of the runtime and of the node; before 1.19 there were no fields."""
    annotations = metadata.get("annotations") or {}
    keys = {_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{each['name']}" for each in containers(spec))}
    bad = [f"{key}={quote(annotations[key])}" for key in keys if not _is_allowed_annotation(annotations.get(key))]
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {plural('annotation', len(bad))} {', '.join(sorted(bad))}")


def _is_allowed_annotation(value: str | None) -> bool:
    return value in (None, "runtime/default", "docker/default") or str(value).startswith("localhost/")


def is_allowed_seccomp(profile: Document) -> bool:
    return profile.get("type") in _ALLOWED_PROFILES


def seccomp_profiles(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid seccomp profiles other than those of the runtime and of the node."""
    bad: set[str] = set()

    def is_forbidden(context: Document) -> bool:
        profile = context.get("seccompProfile")
        if profile is None or is_allowed_seccomp(profile):
            return False
        bad.add(profile.get("type", ""))
        return True

    who = setters_of(spec, is_forbidden)
    if not who:
        return None
    detail = f"{who} must not set securityContext.seccompProfile.type to {quote_all(sorted(bad))}"
    return Violation("seccompProfile", detail)


def sysctls(*allowed: str) -> Check:
    """Return the check that forbids kernel parameters other than these."""

    def check(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
        given = security_context(spec).get("sysctls") or ()
        bad = [each["name"] for each in given if each["name"] not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def windows_host_process(metadata: Document, spec: Document) -> Violation | None:  # noqa: ARG001
    """Forbid Windows containers that run as processes of the node."""
    who = setters_of(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    if not who:
        return None
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")
