"""What the built-in admission plug-ins make of new objects."""

from __future__ import annotations

import json
from typing import Any

from konverge.wire.messages import Request
from konverge_cluster.builtins.admission import builtin_admission
from konverge_cluster.embedded_server import EmbeddedServer

PODS = "/api/v1/namespaces/default/pods"


async def create(plane: EmbeddedServer, path: str, body: dict[str, Any]) -> Any:
    answer = await plane.handle(Request("POST", path, body=json.dumps(body).encode()))
    return json.loads(await answer.read())


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_pod_tolerates_five_minutes_of_trouble() -> None:
    made = await create(EmbeddedServer(), PODS, pod(tolerations=[{"key": "a", "operator": "Exists"}]))

    common = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert made["spec"]["tolerations"][1:] == [
        {"key": "node.kubernetes.io/not-ready", **common},
        {"key": "node.kubernetes.io/unreachable", **common},
    ]


async def test_a_pod_that_tolerates_everything_is_left_alone() -> None:
    tolerations = [{"operator": "Exists"}]

    made = await create(EmbeddedServer(), PODS, pod(tolerations=tolerations))

    assert made["spec"]["tolerations"] == tolerations


async def test_the_name_of_a_priority_becomes_its_number() -> None:
    made = await create(EmbeddedServer(), PODS, pod(priorityClassName="system-node-critical"))

    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (2_000_001_000, "PreemptLowerPriority")


async def test_the_default_priority_is_taken_by_whoever_names_none() -> None:
    plane = EmbeddedServer()
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await create(plane, classes, {"metadata": {"name": "low"}, "value": 7, "globalDefault": True})

    made = await create(plane, PODS, pod())

    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("low", 7)


async def test_an_unknown_priority_is_refused() -> None:
    refused = await create(EmbeddedServer(), PODS, pod(priorityClassName="no"))

    assert refused["code"] == 403
    assert refused["message"] == 'pods "x" is forbidden: no PriorityClass with name no was found'


async def test_a_number_beside_the_priority_must_be_the_same() -> None:
    refused = await create(EmbeddedServer(), PODS, pod(priority=5))

    assert refused["message"].startswith('pods "x" is forbidden: the integer value of priority (5) must not be')


async def test_claims_are_protected_while_they_are_used() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = "/api/v1/namespaces/default/persistentvolumeclaims"

    made = await create(EmbeddedServer(), path, {"metadata": {"name": "x"}, "spec": spec})

    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_a_new_node_is_not_ready() -> None:
    made = await create(EmbeddedServer(), "/api/v1/nodes", {"metadata": {"name": "n"}})

    assert made["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def with_accounts() -> EmbeddedServer:
    plane = EmbeddedServer()
    plane.cluster.admission = builtin_admission(plane.cluster, service_accounts=True)
    return plane


async def test_a_pod_without_its_account_is_refused() -> None:
    refused = await create(with_accounts(), PODS, pod())

    why = 'error looking up service account default/default: serviceaccount "default" not found'
    assert refused["message"] == f'pods "x" is forbidden: {why}'


async def test_a_pod_gets_its_account_and_the_account_s_token() -> None:
    plane = with_accounts()
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await create(plane, accounts, {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]})

    spec = (await create(plane, PODS, pod()))["spec"]

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


async def test_a_pod_that_wants_no_token_gets_none() -> None:
    plane = with_accounts()
    await create(plane, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})

    spec = (await create(plane, PODS, pod(automountServiceAccountToken=False)))["spec"]

    assert "volumes" not in spec
