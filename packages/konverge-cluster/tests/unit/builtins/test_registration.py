"""Every built-in resource is registered, with the properties that the real server reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport
from konverge.objects import Unstructured
from konverge.wire.messages import Request
from konverge_cluster.api.registry import Registry
from konverge_cluster.builtins.addresses import StoredServiceIPs
from konverge_cluster.builtins.data import load
from konverge_cluster.builtins.registration import builtin_strategies, register_builtins
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.storage import Storage

GATES = ("MaxUnavailableStatefulSet",)


def test_resources_are_in_the_order_of_the_real_server() -> None:
    registry = Registry()

    register_builtins(registry, StoredServiceIPs(Storage()))

    served = [(each.info.kind.group, each.info.kind.version, each.info.kind.plural) for each in registry]
    assert served == [(each["group"], each["version"], each["resource"]) for each in load("discovery")]


@pytest.mark.parametrize("strategy", builtin_strategies(), ids=lambda each: each.info.kind.resource)
def test_every_kind_has_a_schema_and_a_merge_topology(strategy: object) -> None:
    assert isinstance(strategy, BuiltinStrategy)
    schema = strategy.schemas()[strategy.schema_name]
    kind = strategy.info.kind

    gvk = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    assert gvk in schema["x-kubernetes-group-version-kind"]
    assert strategy.topologies[kind.api_version].structured


@pytest.mark.parametrize(
    ("path", "selector", "count"),
    [
        ("/api/v1/pods", "spec.nodeName=n", 1),
        ("/api/v1/pods", "spec.nodeName!=n", 0),
        ("/api/v1/pods", "status.phase=Pending,spec.hostNetwork=false", 1),
        ("/api/v1/secrets", "type=Opaque", 1),
        ("/api/v1/services", "spec.type=ClusterIP,metadata.name=kubernetes", 1),
        ("/api/v1/namespaces", "status.phase=Active,metadata.name=default", 1),
        ("/api/v1/nodes", "spec.unschedulable=false", 1),
    ],
)
async def test_field_selectors_match_objects(path: str, selector: str, count: int) -> None:
    server = EmbeddedServer()
    pod = {"metadata": {"name": "x"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    for collection, body in (
        ("/api/v1/namespaces/default/pods", pod),
        ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "x"}}),
        ("/api/v1/nodes", {"metadata": {"name": "x"}}),
    ):
        await server.handle(Request("POST", collection, body=json.dumps(body).encode()))

    response = await server.handle(Request("GET", path, query=(("fieldSelector", selector),)))

    assert len(json.loads(await response.read())["items"]) == count


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/pods", "field label not supported: a.b"),
        ("/apis/batch/v1/jobs", 'field label "a.b" not supported for Job'),
        ("/api/v1/configmaps", '"a.b" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ],
)
async def test_unknown_field_selectors_are_rejected_with_the_text_of_the_kind(path: str, message: str) -> None:
    response = await EmbeddedServer().handle(Request("GET", path, query=(("fieldSelector", "a.b=c"),)))

    assert json.loads(await response.read())["message"].endswith(message)


async def test_deleting_a_job_orphans_its_pods_and_warns() -> None:
    server = EmbeddedServer()
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    path = "/apis/batch/v1/namespaces/default/jobs"
    body = json.dumps({"metadata": {"name": "x"}, "spec": {"template": template}}).encode()
    await server.handle(Request("POST", path, body=body))

    response = await server.handle(Request("DELETE", f"{path}/x"))

    assert json.loads(await response.read())["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in response.warnings[0]


async def test_a_bound_pod_is_deleted_gracefully_and_a_pending_one_at_once() -> None:
    server = EmbeddedServer()
    path = "/api/v1/namespaces/default/pods"
    for name, node in (("bound", "n"), ("pending", "")):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
        await server.handle(Request("POST", path, body=body))
        await server.handle(Request("DELETE", f"{path}/{name}"))

    bound = json.loads(await (await server.handle(Request("GET", f"{path}/bound"))).read())
    pending = await server.handle(Request("GET", f"{path}/pending"))

    assert bound["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pending.status == 404


@pytest.mark.parametrize(("gates", "kept"), [((), {"partition": 0}), (GATES, {"partition": 0, "maxUnavailable": 2})])
async def test_a_feature_gate_keeps_the_fields_that_are_dropped_without_it(gates: Any, kept: dict[str, Any]) -> None:
    client = Client(InProcessTransport(EmbeddedServer(feature_gates=gates).handle))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "updateStrategy": strategy}
    wire = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"}}
    created = await client.create(Unstructured({**wire, "spec": spec}))
    assert created["spec"]["updateStrategy"]["rollingUpdate"] == kept
    await client.patch("statefulsets.apps", "db", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
    updated = await client.get("statefulsets.apps", "db", namespace="default")
    assert updated["spec"]["updateStrategy"]["rollingUpdate"] == kept


def test_an_unknown_feature_gate_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown feature gate 'Other' \\(known: MaxUnavailableStatefulSet\\)"):
        EmbeddedServer(feature_gates=["Other"])
