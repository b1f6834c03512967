"""Kinds that are served in two versions or groups return the same object in both."""

from __future__ import annotations

import json
from typing import Any

from konverge.wire.messages import Request
from konverge_cluster.embedded_server import EmbeddedServer

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
CORE = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TARGET = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}


async def request(server: EmbeddedServer, method: str, path: str, body: Any = None) -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    response = await server.handle(Request(method, path, headers=headers, body=content))
    return json.loads(await response.read())


async def test_the_cpu_target_of_v1_is_a_metric_in_v2() -> None:
    server = EmbeddedServer()
    await request(
        server, "POST", V1, {"metadata": {"name": "x"}, "spec": {**TARGET, "targetCPUUtilizationPercentage": 50}}
    )

    spec = (await request(server, "GET", f"{V2}/x"))["spec"]

    target = {"type": "Utilization", "averageUtilization": 50}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert "targetCPUUtilizationPercentage" not in spec


async def test_fields_that_only_v2_has_survive_writes_through_v1() -> None:
    server = EmbeddedServer()
    pods = {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    body = {"metadata": {"name": "x"}, "spec": {**TARGET, "metrics": [pods], "behavior": behavior}}
    created = await request(server, "POST", V2, body)

    patched = await request(server, "PATCH", f"{V1}/x", {"spec": {"maxReplicas": 7}})
    stored = await request(server, "GET", f"{V2}/x")

    assert "targetCPUUtilizationPercentage" not in patched["spec"]
    assert stored["spec"] == {**created["spec"], "maxReplicas": 7}
    assert "annotations" not in stored["metadata"]


async def test_an_event_is_the_same_in_both_groups() -> None:
    server = EmbeddedServer()
    regarding = {"kind": "Pod", "name": "p", "namespace": "default"}
    body = {"metadata": {"name": "x"}, "regarding": regarding, "note": "n", "reason": "R", "type": "Normal"}
    body |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a", "reportingInstance": "i"}
    await request(server, "POST", EVENTS, {**body, "action": "A"})

    event = await request(server, "GET", f"{CORE}/x")

    assert event["involvedObject"] == regarding
    assert (event["message"], event["reportingComponent"], event["firstTimestamp"]) == ("n", "a", None)


async def test_events_can_be_selected_by_the_fields_of_either_group() -> None:
    server = EmbeddedServer()
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    await request(
        server, "POST", CORE, {"metadata": {"name": "x"}, "involvedObject": involved, "source": {"component": "c"}}
    )

    for path, query in (
        (CORE, "involvedObject.name=p,source=c"),
        (EVENTS, "regarding.name=p"),
    ):
        response = await server.handle(Request("GET", path, query=(("fieldSelector", query),)))
        assert len(json.loads(await response.read())["items"]) == 1
    response = await server.handle(Request("GET", EVENTS, query=(("fieldSelector", "involvedObject.name=p"),)))
    assert json.loads(await response.read())["message"].endswith("field label not supported: involvedObject.name")
