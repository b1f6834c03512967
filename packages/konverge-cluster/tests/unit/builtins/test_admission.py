"""The built-in admission plugins set defaults of new objects and reject invalid ones."""

from __future__ import annotations

import json
from typing import Any

from konverge.wire.messages import Request
from konverge_cluster.builtins.admission import builtin_admission
from konverge_cluster.embedded_server import EmbeddedServer

PODS = "/api/v1/namespaces/default/pods"


async def create(server: EmbeddedServer, path: str, body: dict[str, Any]) -> Any:
    response = await server.handle(Request("POST", path, body=json.dumps(body).encode()))
    return json.loads(await response.read())


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_pod_tolerates_an_unreachable_node_for_five_minutes() -> None:
    created = await create(EmbeddedServer(), PODS, pod(tolerations=[{"key": "a", "operator": "Exists"}]))

    common = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert created["spec"]["tolerations"][1:] == [
        {"key": "node.kubernetes.io/not-ready", **common},
        {"key": "node.kubernetes.io/unreachable", **common},
    ]


async def test_a_pod_that_tolerates_everything_is_unchanged() -> None:
    tolerations = [{"operator": "Exists"}]

    created = await create(EmbeddedServer(), PODS, pod(tolerations=tolerations))

    assert created["spec"]["tolerations"] == tolerations


async def test_a_priority_class_name_is_resolved_to_its_value() -> None:
    created = await create(EmbeddedServer(), PODS, pod(priorityClassName="system-node-critical"))

    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (2_000_001_000, "PreemptLowerPriority")


async def test_the_default_priority_class_applies_to_a_pod_without_one() -> None:
    server = EmbeddedServer()
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await create(server, classes, {"metadata": {"name": "low"}, "value": 7, "globalDefault": True})

    created = await create(server, PODS, pod())

    assert (created["spec"]["priorityClassName"], created["spec"]["priority"]) == ("low", 7)


async def test_an_unknown_priority_class_is_rejected() -> None:
    rejected = await create(EmbeddedServer(), PODS, pod(priorityClassName="no"))

    assert rejected["code"] == 403
    assert rejected["message"] == 'pods "x" is forbidden: no PriorityClass with name no was found'


async def test_a_priority_must_match_its_class() -> None:
    rejected = await create(EmbeddedServer(), PODS, pod(priority=5))

    assert rejected["message"].startswith('pods "x" is forbidden: the integer value of priority (5) must not be')


async def test_a_new_claim_has_a_protection_finalizer() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = "/api/v1/namespaces/default/persistentvolumeclaims"

    created = await create(EmbeddedServer(), path, {"metadata": {"name": "x"}, "spec": spec})

    assert created["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_a_new_node_has_the_not_ready_taint() -> None:
    created = await create(EmbeddedServer(), "/api/v1/nodes", {"metadata": {"name": "n"}})

    assert created["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def with_accounts() -> EmbeddedServer:
    server = EmbeddedServer()
    server.cluster.admission = builtin_admission(server.cluster, service_accounts=True)
    return server


async def test_a_pod_with_a_missing_service_account_is_rejected() -> None:
    rejected = await create(with_accounts(), PODS, pod())

    reason = 'error looking up service account default/default: serviceaccount "default" not found'
    assert rejected["message"] == f'pods "x" is forbidden: {reason}'


async def test_a_pod_gets_its_service_account_and_a_token_volume() -> None:
    server = with_accounts()
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await create(server, accounts, {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]})

    spec = (await create(server, PODS, pod()))["spec"]

    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    [volume], [mount] = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert [list(source) for source in volume["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
        ["downwardAPI"],
    ]
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }


async def test_a_pod_can_opt_out_of_the_token_volume() -> None:
    server = with_accounts()
    await create(server, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})

    spec = (await create(server, PODS, pod(automountServiceAccountToken=False)))["spec"]

    assert "volumes" not in spec
