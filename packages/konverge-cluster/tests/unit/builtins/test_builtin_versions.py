"""Kinds that are served in two versions or groups show the same object in both."""

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


async def ask(plane: EmbeddedServer, method: str, path: str, body: Any = None) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    answer = await plane.handle(Request(method, path, headers=headers, body=sent))
    return json.loads(await answer.read())


async def test_the_target_of_the_old_autoscaler_is_a_metric_of_the_new_one() -> None:
    plane = EmbeddedServer()
    await ask(plane, "POST", V1, {"metadata": {"name": "x"}, "spec": {**TARGET, "targetCPUUtilizationPercentage": 50}})

    spec = (await ask(plane, "GET", f"{V2}/x"))["spec"]

    target = {"type": "Utilization", "averageUtilization": 50}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert "targetCPUUtilizationPercentage" not in spec


async def test_what_the_old_autoscaler_cannot_say_survives_its_writes() -> None:
    plane = EmbeddedServer()
    pods = {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    wish = {"metadata": {"name": "x"}, "spec": {**TARGET, "metrics": [pods], "behavior": behavior}}
    made = await ask(plane, "POST", V2, wish)

    shown = await ask(plane, "PATCH", f"{V1}/x", {"spec": {"maxReplicas": 7}})
    kept = await ask(plane, "GET", f"{V2}/x")

    assert "targetCPUUtilizationPercentage" not in shown["spec"]
    assert kept["spec"] == {**made["spec"], "maxReplicas": 7}
    assert "annotations" not in kept["metadata"]


async def test_an_event_is_the_same_in_both_groups() -> None:
    plane = EmbeddedServer()
    regarding = {"kind": "Pod", "name": "p", "namespace": "default"}
    wish = {"metadata": {"name": "x"}, "regarding": regarding, "note": "n", "reason": "R", "type": "Normal"}
    wish |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a", "reportingInstance": "i"}
    await ask(plane, "POST", EVENTS, {**wish, "action": "A"})

    seen = await ask(plane, "GET", f"{CORE}/x")

    assert seen["involvedObject"] == regarding
    assert (seen["message"], seen["reportingComponent"], seen["firstTimestamp"]) == ("n", "a", None)


async def test_events_are_found_by_the_fields_of_either_group() -> None:
    plane = EmbeddedServer()
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    await ask(
        plane, "POST", CORE, {"metadata": {"name": "x"}, "involvedObject": involved, "source": {"component": "c"}}
    )

    for path, query in (
        (CORE, "involvedObject.name=p,source=c"),
        (EVENTS, "regarding.name=p"),
    ):
        answer = await plane.handle(Request("GET", path, query=(("fieldSelector", query),)))
        assert len(json.loads(await answer.read())["items"]) == 1
    answer = await plane.handle(Request("GET", EVENTS, query=(("fieldSelector", "involvedObject.name=p"),)))
    assert json.loads(await answer.read())["message"].endswith("field label not supported: involvedObject.name")
