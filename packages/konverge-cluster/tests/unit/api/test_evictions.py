"""Evictions: a pod is deleted unless a disruption budget forbids it."""

from __future__ import annotations

from typing import Any

import pytest

from virtual_server import Json, VirtualTimeServer

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVICTION: Json = {"metadata": {"name": "p"}}


async def running_pod(*, ready: bool = True, **budget: Any) -> VirtualTimeServer:
    """Return a server with a running pod, and a budget for it with the given status."""
    plane = VirtualTimeServer()
    await plane.good("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await plane.good("POST", PODS, {"metadata": {"name": "p", "labels": {"app": "w"}}, "spec": spec})
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await plane.merge(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": [condition]}})
    selector = {"matchLabels": {"app": "w"}}
    policy = {"unhealthyPodEvictionPolicy": budget.pop("policy")} if "policy" in budget else {}
    created = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector, **policy}}
    await plane.good("POST", BUDGETS, created)
    await plane.merge(f"{BUDGETS}/b/status", {"status": {"observedGeneration": 1, **budget}})
    return plane


async def test_an_eviction_decrements_the_budget_and_sets_a_pod_condition() -> None:
    plane = await running_pod(disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)

    assert (await plane.request("POST", f"{PODS}/p/eviction", EVICTION))[0] == 201

    pod = await plane.good("GET", f"{PODS}/p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    budget = await plane.good("GET", f"{BUDGETS}/b")
    assert budget["status"]["disruptionsAllowed"] == 0
    assert list(budget["status"]["disruptedPods"]) == ["p"]
    (condition,) = budget["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
    )
    assert "kube-apiserver" in [one["manager"] for one in budget["metadata"]["managedFields"]]


async def test_an_exhausted_budget_prevents_the_eviction() -> None:
    plane = await running_pod(disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)

    code, error = await plane.request("POST", f"{PODS}/p/eviction", EVICTION)

    assert (code, error["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    assert (
        error["details"]["causes"][0]["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    )
    assert "deletionTimestamp" not in (await plane.good("GET", f"{PODS}/p"))["metadata"]


async def test_an_unprocessed_budget_responds_with_retry_after() -> None:
    plane = await running_pod(observedGeneration=0)

    response = await plane.send("POST", f"{PODS}/p/eviction", EVICTION)

    assert (response.status, response.headers["retry-after"]) == (429, "10")


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ({"currentHealthy": 1, "desiredHealthy": 1}, 201),
        ({"currentHealthy": 0, "desiredHealthy": 1}, 429),
        ({"currentHealthy": 0, "desiredHealthy": 1, "policy": "AlwaysAllow"}, 201),
    ],
)
async def test_an_unready_pod_is_protected_only_if_the_budget_needs_it(budget: Json, code: int) -> None:
    plane = await running_pod(ready=False, disruptionsAllowed=0, **budget)

    assert (await plane.request("POST", f"{PODS}/p/eviction", EVICTION))[0] == code


async def test_a_dry_run_eviction_changes_nothing() -> None:
    plane = await running_pod(disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    version = plane.server.cluster.storage.revision

    assert (await plane.request("POST", f"{PODS}/p/eviction?dryRun=All", EVICTION))[0] == 201

    assert plane.server.cluster.storage.revision == version


async def test_two_budgets_for_one_pod_are_rejected() -> None:
    plane = await running_pod(disruptionsAllowed=1)
    await plane.good("POST", BUDGETS, {"metadata": {"name": "c"}, "spec": {"selector": {}}})

    code, error = await plane.request("POST", f"{PODS}/p/eviction", EVICTION)

    assert code == 500
    text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert error["message"] == text


@pytest.mark.parametrize(
    ("condition", "healthy", "expected"),
    [
        (("SyncFailed", "no scale"), 2, "does not allow evicting pods currently because it failed sync: no scale"),
        (("Other", "why"), 2, "does not allow evicting pods currently (Other): why"),
        (("Other", ""), 2, "does not allow evicting pods currently"),
        (("Other", "why"), 1, "needs 1 healthy pods and has 1 currently"),
    ],
)
async def test_the_cause_of_a_refused_eviction(condition: tuple[str, str], healthy: int, expected: str) -> None:
    reason, message = condition
    found = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    plane = await running_pod(disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=1, conditions=[found])

    code, error = await plane.request("POST", f"{PODS}/p/eviction", EVICTION)

    assert (code, error["details"]["causes"][0]["message"]) == (429, f"The disruption budget b {expected}")


async def test_an_eviction_of_another_version_or_pod_is_a_conflict() -> None:
    plane = await running_pod(disruptionsAllowed=2, currentHealthy=3, desiredHealthy=1)
    for preconditions, word in (({"uid": "another"}, "UID"), ({"resourceVersion": "1"}, "ResourceVersion")):
        body = {**EVICTION, "deleteOptions": {"preconditions": preconditions}}

        code, error = await plane.request("POST", f"{PODS}/p/eviction", body)

        assert code == 409
        assert f"the {word} in the precondition" in error["message"]
    assert "deletionTimestamp" not in (await plane.good("GET", f"{PODS}/p"))["metadata"]
