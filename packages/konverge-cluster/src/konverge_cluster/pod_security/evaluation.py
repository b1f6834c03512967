"""Which checks a version of a level consists of, and what they find in a pod.

A control is one subject of the Pod Security Standards; its revisions are the checks that apply from a version on. A
control of the restricted level may replace one of the baseline. The order is that of the real server's messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from konverge_cluster.pod_security import baseline, restricted
from konverge_cluster.pod_security.policies import BASELINE, PRIVILEGED, RESTRICTED, LevelVersion
from konverge_cluster.pod_security.violations import Check, Document, Violation

__all__ = ["evaluate"]


@dataclass(frozen=True, slots=True)
class _Control:
    """One subject: `revisions` are pairs of the first minor version and the check."""

    name: str
    level: int
    revisions: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def check_of(self, minor: int) -> Check | None:
        found = None
        for first, check in self.revisions:
            if first <= minor:
                found = check
        return found


_SE_LINUX_TYPES: Final = ("container_t", "container_init_t", "container_kvm_t")
_SYSCTLS: Final = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
    *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
)
_SYSCTLS_1_27: Final = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_1_29: Final = (
    *_SYSCTLS_1_27,
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout"),
    *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"),
)
_SYSCTLS_1_32: Final = (*_SYSCTLS_1_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


def _since_windows(first: int, check: Check) -> tuple[tuple[int, Check], ...]:
    """Return the revisions of a check that ignores Windows pods from 1.25 on."""
    return (first, check), (25, restricted.except_for_windows(check))


def _since_user_namespaces(first: int, check: Check) -> tuple[tuple[int, Check], ...]:
    """Return the revisions of a check that ignores pods with user namespaces from 1.35 on."""
    return (first, check), (35, restricted.except_for_user_namespaces(check))


_CONTROLS: Final = (
    _Control("appArmorProfile", BASELINE, ((0, baseline.app_armor_profiles),)),
    _Control("capabilities_baseline", BASELINE, ((0, baseline.capabilities),)),
    _Control("hostNamespaces", BASELINE, ((0, baseline.host_namespaces),)),
    _Control("hostPathVolumes", BASELINE, ((0, baseline.host_path_volumes),)),
    _Control("hostPorts", BASELINE, ((0, baseline.host_ports),)),
    _Control("hostProbesAndHostLifecycle", BASELINE, ((34, baseline.hosts_of_handlers),)),
    _Control("privileged", BASELINE, ((0, baseline.privileged),)),
    _Control("procMount", BASELINE, _since_user_namespaces(0, baseline.proc_mount)),
    _Control(
        "seLinuxOptions",
        BASELINE,
        (
            (0, baseline.se_linux_options(*_SE_LINUX_TYPES)),
            (31, baseline.se_linux_options(*_SE_LINUX_TYPES, "container_engine_t")),
        ),
    ),
    _Control("seccompProfile_baseline", BASELINE, ((0, baseline.seccomp_annotations), (19, baseline.seccomp_profiles))),
    _Control(
        "sysctls",
        BASELINE,
        (
            (0, baseline.sysctls(*_SYSCTLS)),
            (27, baseline.sysctls(*_SYSCTLS_1_27)),
            (29, baseline.sysctls(*_SYSCTLS_1_29)),
            (32, baseline.sysctls(*_SYSCTLS_1_32)),
        ),
    ),
    _Control("windowsHostProcess", BASELINE, ((0, baseline.windows_host_process),)),
    _Control("allowPrivilegeEscalation", RESTRICTED, _since_windows(8, restricted.no_privilege_escalation)),
    _Control(
        "capabilities_restricted",
        RESTRICTED,
        _since_windows(22, restricted.restricted_capabilities),
        replaces="capabilities_baseline",
    ),
    _Control("procMount_restricted", RESTRICTED, ((35, baseline.proc_mount),), replaces="procMount"),
    _Control("restrictedVolumes", RESTRICTED, ((0, restricted.restricted_volumes),), replaces="hostPathVolumes"),
    _Control("runAsNonRoot", RESTRICTED, _since_user_namespaces(0, restricted.run_as_non_root)),
    _Control("runAsUser", RESTRICTED, _since_user_namespaces(23, restricted.run_as_user)),
    _Control(
        "seccompProfile_restricted",
        RESTRICTED,
        _since_windows(19, restricted.seccomp_profile_required),
        replaces="seccompProfile_baseline",
    ),
)
_NEWEST: Final = max(first for control in _CONTROLS for first, _ in control.revisions)


def evaluate(policy: LevelVersion, metadata: Document, spec: Document) -> list[Violation]:
    """Return what a level of a version forbids in a pod or a pod template."""
    if policy.level == PRIVILEGED:
        return []
    minor = _NEWEST if policy.minor is None else min(policy.minor, _NEWEST)
    found = (check(metadata, spec) for check in _checks(policy.level, minor))
    return [violation for violation in found if violation is not None]


@cache
def _checks(level: int, minor: int) -> tuple[Check, ...]:
    selected = {each.name: each for each in _CONTROLS if each.level <= level and each.check_of(minor) is not None}
    replaced = {each.replaces for each in selected.values()}
    checks = (each.check_of(minor) for name, each in selected.items() if name not in replaced)
    return tuple(check for check in checks if check is not None)
