"""Webhooks in the same process: order of calls, results, concurrency."""

from __future__ import annotations

import asyncio
from typing import Any

from virtual_server import CONFIG_MAPS, Json, config_map
from webhook_servers import HOOKS, WebhookTestServer, patching

ALLOW: Json = {"allowed": True}
DENY: Json = {"allowed": False, "status": {"message": "no"}}


def now() -> float:
    return asyncio.get_running_loop().time()


def after(seconds: float, response: Json) -> Any:
    """Return a webhook that responds after some seconds."""

    async def respond(_request: Json) -> Json:
        await asyncio.sleep(seconds)
        return response

    return respond


async def test_a_function_in_this_process_serves_a_service_reference() -> None:
    plane = WebhookTestServer()
    await plane.configure("mutating", plane.hook("one", patching({"op": "add", "path": "/data/b", "value": "2"})))

    created = await plane.good("POST", CONFIG_MAPS, config_map("x", a="1"))

    assert created["data"] == {"a": "1", "b": "2"}
    assert plane.called == ["one"]


async def test_validating_webhooks_are_called_concurrently() -> None:
    plane = WebhookTestServer()
    hooks = [plane.hook(name, after(5, ALLOW)) for name in ("one", "two", "three")]
    await plane.configure("validating", *hooks)

    start = now()
    await plane.good("POST", CONFIG_MAPS, config_map("x"))

    assert now() - start == 5


async def test_mutating_webhooks_are_called_one_after_the_other() -> None:
    plane = WebhookTestServer()
    await plane.configure("mutating", *[plane.hook(name, after(5, ALLOW)) for name in ("one", "two")])

    start = now()
    await plane.good("POST", CONFIG_MAPS, config_map("x"))

    assert now() - start == 10


async def test_the_first_rejection_is_returned() -> None:
    plane = WebhookTestServer()
    late = plane.hook("late", after(2, DENY))
    early = plane.hook("early", after(1, DENY))
    await plane.configure("validating", late, early)

    code, found = await plane.request("POST", CONFIG_MAPS, config_map("x"))

    assert (code, found["message"]) == (400, 'admission webhook "early.hooks.test" denied the request: no')


async def test_a_webhook_without_a_response_times_out() -> None:
    plane = WebhookTestServer()
    await plane.configure("validating", plane.hook("slow", after(3600, ALLOW), timeoutSeconds=7))

    start = now()
    code, found = await plane.request("POST", CONFIG_MAPS, config_map("x"))

    assert now() - start == 7
    assert code == 500
    late = 'Post "https://slow.hooks.svc:443/?timeout=7s": context deadline exceeded'
    assert found["message"].endswith(f'failed calling webhook "slow.hooks.test": failed to call webhook: {late}')


async def test_a_function_that_raises_is_a_server_error() -> None:
    async def broken(_request: Json) -> Json:
        raise TimeoutError("my own clock")

    plane = WebhookTestServer()
    await plane.configure("validating", plane.hook("broken", broken))

    _, found = await plane.request("POST", CONFIG_MAPS, config_map("x"))

    desired = 'an error on the server ("TimeoutError: my own clock") has prevented the request from succeeding'
    assert found["message"].endswith(desired)


async def test_other_writes_continue_while_a_webhook_is_called() -> None:
    plane = WebhookTestServer()
    selector = {"matchLabels": {"slow": "yes"}}
    await plane.configure("mutating", plane.hook("slow", after(5, ALLOW), objectSelector=selector))

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(plane.good("POST", CONFIG_MAPS, config_map("slow", {"slow": "yes"})))
        await asyncio.sleep(1)
        quick = await plane.good("POST", CONFIG_MAPS, config_map("quick"))
        assert now() == 1

    assert int(quick["metadata"]["resourceVersion"]) < int(slow.result()["metadata"]["resourceVersion"])


async def test_a_write_starts_over_after_a_concurrent_write() -> None:
    plane = WebhookTestServer()
    await plane.good("POST", CONFIG_MAPS, config_map("x", {"slow": "yes"}, a="1"))
    selector = {"matchLabels": {"slow": "yes"}}
    hook = plane.hook("slow", after(5, ALLOW), objectSelector=selector)
    configuration = await plane.configure("mutating", hook)

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(plane.merge(f"{CONFIG_MAPS}/x", {"data": {"b": "2"}}))
        await asyncio.sleep(1)
        await plane.good("DELETE", f"{HOOKS}/mutatingwebhookconfigurations/{configuration['metadata']['name']}")
        await plane.merge(f"{CONFIG_MAPS}/x", {"data": {"c": "3"}})

    assert slow.result()["data"] == {"a": "1", "b": "2", "c": "3"}


async def test_a_handler_gets_its_own_copy() -> None:
    async def spoil(request: Json) -> Json:
        request["object"]["data"]["a"] = "spoiled"
        return ALLOW

    plane = WebhookTestServer()
    await plane.configure("validating", plane.hook("spoil", spoil))

    assert (await plane.good("POST", CONFIG_MAPS, config_map("x", a="1")))["data"] == {"a": "1"}


async def test_writes_of_webhook_configurations_call_no_webhooks() -> None:
    plane = WebhookTestServer()
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await plane.configure("validating", plane.hook("all", DENY, rules=[rule]))

    code, _ = await plane.request("POST", CONFIG_MAPS, config_map("x"))
    gone, _ = await plane.request("DELETE", f"{HOOKS}/validatingwebhookconfigurations/hooks")

    assert (code, gone) == (400, 200)
    assert plane.called == ["all"]


async def test_a_webhook_for_another_version_receives_and_patches_the_object_in_that_version() -> None:
    scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"],
    }
    target = {"type": "Utilization", "averageUtilization": 55}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    plane = WebhookTestServer()
    patch = patching({"op": "replace", "path": "/spec/metrics", "value": metrics})
    await plane.configure("mutating", plane.hook("v2", patch, rules=[rule]))
    reference = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}

    created = await plane.good(
        "POST", scalers, {"metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "scaleTargetRef": reference}}
    )

    asked = plane.requests[0]
    assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v2", "v1")
    assert (asked["resource"]["version"], asked["requestResource"]["version"]) == ("v2", "v1")
    assert asked["object"]["apiVersion"] == "autoscaling/v2"
    assert created["apiVersion"] == "autoscaling/v1"
    assert created["spec"]["targetCPUUtilizationPercentage"] == 55


async def test_an_exact_rule_ignores_other_versions() -> None:
    scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    kind = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "resources": ["*"], "operations": ["*"]}
    plane = WebhookTestServer()
    await plane.configure("validating", plane.hook("exact", DENY, rules=[kind], matchPolicy="Exact"))
    reference = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    spec = {"maxReplicas": 3, "scaleTargetRef": reference}

    await plane.good("POST", scalers, {"metadata": {"name": "x"}, "spec": spec})

    assert plane.called == []


async def test_review_version_v1beta1_is_used_when_it_is_listed_first() -> None:
    plane = WebhookTestServer()
    hook = plane.hook("old", ALLOW, admissionReviewVersions=["v0", "v1beta1", "v1"])
    await plane.configure("validating", hook)

    await plane.good("POST", CONFIG_MAPS, config_map("x"))

    assert plane.called == ["old"]


async def test_a_webhook_is_called_only_when_its_conditions_hold() -> None:
    plane = WebhookTestServer()
    conditions = [
        {"name": "named", "expression": "object.metadata.name.startsWith('seen')"},
        {"name": "no-rehearsal", "expression": "!request.dryRun && request.operation in ['CREATE', 'UPDATE']"},
    ]
    await plane.configure("validating", plane.hook("picky", ALLOW, matchConditions=conditions))

    for name in ("seen-1", "other"):
        await plane.good("POST", CONFIG_MAPS, config_map(name))
    await plane.good("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("seen-2"))
    await plane.good("DELETE", f"{CONFIG_MAPS}/other")

    assert [each["name"] for each in plane.requests] == ["seen-1"]
