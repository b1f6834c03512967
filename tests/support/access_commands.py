"""kubectl's commands about access: `auth can-i`, `auth can-i --list`, `auth reconcile`, `certificate approve`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from access_cases import RBAC, binding, role, rule, urls, user
from authentication_clusters import AuthenticationCluster, masked
from authentication_scenarios import Answers, Json
from certificate_scenarios import create, signed, signing_request

__all__ = ["ACCESS_SCENARIOS"]

_USER = "carol"
_ROLES = f"{RBAC}/clusterroles"

CAN_I = (
    "list pods",
    "delete pods",
    "get pods --subresource=log",
    "get configmaps/settings",
    "get configmaps/other",
    "list pods --all-namespaces",
    "list deployments.apps --quiet",
    "get /healthz",
    "get /carol",
    "get /metrics",
    "list nodes",
    "list strange",
    "list pods --namespace kube-system",
    "--list",
    "--list --namespace kube-system",
    "--list --no-headers",
)


def questions(cluster: AuthenticationCluster) -> Answers:
    """What a user with a few rules may do; the admin may do everything."""
    rules = (
        rule("get list", "pods pods/log"),
        rule("get", "configmaps", resourceNames=["settings"]),
        rule("*", "*", "example.com"),
    )
    objects = (
        ("namespaces/default/roles", role(_USER, *rules)),
        ("namespaces/default/rolebindings", binding(_USER, _USER, user(_USER), kind="Role")),
        ("clusterroles", role(_USER, urls("get", "/carol"))),
        ("clusterrolebindings", binding(_USER, _USER, user(_USER))),
    )
    for path, body in objects:
        cluster.good("POST", f"{RBAC}/{path}", body)
    for question in ("list pods", "get /carol"):
        cluster.until(partial(_is_allowed, cluster, question))
    answers = {question: _run(cluster, f"auth can-i {question} --as {_USER}") for question in CAN_I}
    answers |= {f"admin: {line}": _run(cluster, f"auth can-i {line}") for line in ("* *", "delete nodes", "--list")}
    answers["nobody"] = _run(cluster, "auth can-i list pods --as nobody --as-group nothing")
    return answers


def reconciled_roles(cluster: AuthenticationCluster) -> Answers:
    """`auth reconcile` creates what is missing, adds rules and subjects, and removes others only when asked."""
    first = _manifest(rule("get", "pods"), subjects=("ann",))
    wider = _manifest(rule("get list", "pods"), rule("get", "secrets"), subjects=("bob",))
    steps = {
        "created": ("auth reconcile -f -", first),
        "unchanged": ("auth reconcile -f -", first),
        "dry run": ("auth reconcile -f - --dry-run=client", wider),
        "wider": ("auth reconcile -f -", wider),
        "narrow": ("auth reconcile -f -", first),
        "removed": ("auth reconcile -f - --remove-extra-permissions --remove-extra-subjects", first),
        "another role": ("auth reconcile -f -", first.replace('"name": "reconciled-role"', '"name": "view"')),
    }
    answers: Answers = {}
    for label, (line, manifest) in steps.items():
        answers[label] = _run(cluster, line, manifest)
        answers[f"{label}: role"] = _content(cluster, f"{_ROLES}/reconciled-role")
        answers[f"{label}: binding"] = _content(cluster, f"{RBAC}/clusterrolebindings/reconciled")
    return answers


def decided_requests(cluster: AuthenticationCluster) -> Answers:
    """`certificate approve` and `certificate deny`, and what `get csr` shows."""
    for name in ("dora", "emil", "fritz"):
        assert create(cluster, name, signing_request(name)[0]).status == 201
    answers: Answers = {"pending": _run(cluster, "get csr fritz --no-headers")}
    answers["approve"] = _run(cluster, "certificate approve dora")
    assert signed(cluster, "dora").startswith(b"-----BEGIN CERTIFICATE-----")
    answers["approve again"] = _run(cluster, "certificate approve dora")
    answers["deny"] = _run(cluster, "certificate deny emil")
    answers["approve denied"] = _run(cluster, "certificate approve emil")
    answers["approve missing"] = _run(cluster, "certificate approve nothing")
    answers["approve as nobody"] = _run(cluster, "certificate approve fritz --as nobody")
    for name in ("dora", "emil"):
        answers[f"{name}: row"] = _run(cluster, f"get csr {name} --no-headers")
    return answers


def _is_allowed(cluster: AuthenticationCluster, question: str) -> bool:
    return bool(_run(cluster, f"auth can-i {question} --as {_USER}")[0] == 0)


def _manifest(*rules: Json, subjects: tuple[str, ...]) -> str:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    bound = binding("reconciled", "reconciled-role", *map(user, subjects))
    items = [{**kind, "kind": "ClusterRole", **role("reconciled-role", *rules)}]
    items.append({**kind, "kind": "ClusterRoleBinding", **bound})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _run(cluster: AuthenticationCluster, line: str, text: str = "") -> Any:
    """Run kubectl; its lines are sorted: the real server lists rules in random order."""
    run = cluster.kubectl.run(line.split(" "), text=text, limit=60)
    return masked([run.code, sorted(run.out.splitlines()), run.err])


def _content(cluster: AuthenticationCluster, path: str) -> Any:
    document = cluster.request("GET", path).json()
    return {name: document.get(name) for name in ("rules", "roleRef", "subjects", "message")}


ACCESS_SCENARIOS = (questions, reconciled_roles, decided_requests)
