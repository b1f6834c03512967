"""PodSecurity without a real server: what depends on a version, and what only a race can cause.

The texts are compared with a real server in tests/contract/test_pod_security_on_both.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from konverge.wire.messages import Request
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.pod_security import PodSecurity
from konverge_cluster.pod_security.evaluation import evaluate
from konverge_cluster.pod_security.policies import BASELINE, RESTRICTED, LevelVersion, read_policy

PREFIX = "pod-security.kubernetes.io/"


def spec(pod: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **container}], **(pod or {})}


def reasons(level: int, minor: int | None, pod: dict[str, Any]) -> list[str]:
    return [each.reason for each in evaluate(LevelVersion(level, minor), {}, pod)]


PLAIN = spec()
WINDOWS = spec({"os": {"name": "windows"}})
OWN_USERS = spec({"hostUsers": False}, securityContext={"procMount": "Unmasked", "runAsUser": 0})


ESCALATION, CAPABILITIES = "allowPrivilegeEscalation != false", "unrestricted capabilities"
NON_ROOT, SECCOMP = "runAsNonRoot != true", "seccompProfile"


@pytest.mark.parametrize(
    ("minor", "pod", "expected"),
    [
        (7, PLAIN, [NON_ROOT]),
        (8, PLAIN, [ESCALATION, NON_ROOT]),
        (19, PLAIN, [ESCALATION, NON_ROOT, SECCOMP]),
        (22, PLAIN, [ESCALATION, CAPABILITIES, NON_ROOT, SECCOMP]),
        (22, spec({"securityContext": {"runAsUser": 0}}), [ESCALATION, CAPABILITIES, NON_ROOT, SECCOMP]),
        (23, spec({"securityContext": {"runAsUser": 0}}), [ESCALATION, CAPABILITIES, NON_ROOT, "runAsUser=0", SECCOMP]),
        (24, WINDOWS, [ESCALATION, CAPABILITIES, NON_ROOT, SECCOMP]),
        (25, WINDOWS, [NON_ROOT]),
        (34, OWN_USERS, ["procMount", ESCALATION, CAPABILITIES, NON_ROOT, "runAsUser=0", SECCOMP]),
        (35, OWN_USERS, [ESCALATION, CAPABILITIES, "procMount", SECCOMP]),
        (99, OWN_USERS, [ESCALATION, CAPABILITIES, "procMount", SECCOMP]),
        (None, OWN_USERS, [ESCALATION, CAPABILITIES, "procMount", SECCOMP]),
    ],
)
def test_a_version_selects_the_checks_of_the_restricted_level(
    minor: int | None, pod: dict[str, Any], expected: list[str]
) -> None:
    assert reasons(RESTRICTED, minor, pod) == expected


@pytest.mark.parametrize(
    ("minor", "pod", "forbidden"),
    [
        (33, spec(livenessProbe={"httpGet": {"host": "h"}}), False),
        (34, spec(livenessProbe={"httpGet": {"host": "h"}}), True),
        (34, spec(lifecycle={"preStop": {"tcpSocket": {"host": "h"}}}), True),
        (30, spec(securityContext={"seLinuxOptions": {"type": "container_engine_t"}}), True),
        (31, spec(securityContext={"seLinuxOptions": {"type": "container_engine_t"}}), False),
        (31, spec({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_wmem"}]}}), True),
        (32, spec({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_wmem"}]}}), False),
        (18, spec(securityContext={"seccompProfile": {"type": "Unconfined"}}), False),
        (19, spec(securityContext={"seccompProfile": {"type": "Unconfined"}}), True),
        (34, OWN_USERS, True),
        (35, OWN_USERS, False),
    ],
)
def test_a_version_selects_the_checks_of_the_baseline_level(minor: int, pod: dict[str, Any], forbidden: bool) -> None:
    assert bool(reasons(BASELINE, minor, pod)) is forbidden


def test_a_warning_level_follows_the_enforced_one_unless_it_is_set() -> None:
    policy, errors = read_policy({f"{PREFIX}enforce": "restricted", f"{PREFIX}enforce-version": "v1.30"})

    assert not errors
    assert str(policy.warn) == "restricted:v1.30"
    assert str(policy.audit) == "privileged:latest"


def test_unreadable_labels_enforce_the_strictest_level() -> None:
    policy, errors = read_policy({f"{PREFIX}enforce": "x", f"{PREFIX}warn": "x", f"{PREFIX}audit-version": "x"})

    assert [str(each) for each in (policy.enforce, policy.warn, policy.audit)] == [
        "restricted:latest",
        "privileged:latest",
        "privileged:latest",
    ]
    assert len(errors) == 3


async def test_a_pod_whose_namespace_disappears_during_admission_is_rejected() -> None:
    server = EmbeddedServer()
    strategy = server.cluster.registry.find("", "v1", "pods")
    assert strategy is not None
    pod = {"metadata": {"name": "p"}, "spec": PLAIN}
    request = AdmissionRequest(strategy, "CREATE", "gone", "p", pod)

    with pytest.raises(StatusError, match='failed to lookup namespace "gone"'):
        await PodSecurity(server.cluster.storage).validate(request)


async def test_only_the_first_3000_pods_of_a_namespace_are_checked() -> None:
    server = EmbeddedServer()
    path = "/api/v1/namespaces/default"
    body = b'{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
    for _ in range(3001):
        await server.handle(Request("POST", f"{path}/pods", body=body, headers={"content-type": "application/json"}))
    label = f'{{"metadata":{{"labels":{{"{PREFIX}enforce":"restricted"}}}}}}'.encode()

    headers = {"content-type": "application/merge-patch+json"}
    response = await server.handle(Request("PATCH", path, headers=headers, body=label))

    first, second, third = response.warnings
    assert "only checked against the first 3000 of 3001 existing pods" in first
    assert "existing pods in namespace" in second
    assert "(and 2999 other pods): allowPrivilegeEscalation != false" in third
