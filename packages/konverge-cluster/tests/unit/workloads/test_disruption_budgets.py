"""Disruption budgets: their status from pods, and evictions on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.errors import TooManyRequests
from konverge.k8s.meta.v1 import LabelSelector
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Unstructured, from_wire
from konverge.testing import settle
from konverge_cluster.workloads.disruption.budgets import (
    Scale,
    desired_healthy,
    disrupted_pods,
    failed_status,
    needs_scale,
    status_of,
)
from konverge_cluster.workloads.disruption.reconciler import format_selector
from konverge_cluster.workloads.disruption.stale_conditions import until_stale
from running_clusters import conditions, deployment, running_cluster
from workload_clusters import EmbeddedWorkloadCluster, embedded_workload_cluster
from workload_objects import NOW, at, pod, wire_time


def budget(*, status: dict[str, Any] | None = None, **spec: Any) -> PodDisruptionBudget:
    metadata = {"name": "web", "namespace": "default", "generation": 2}
    whole = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return from_wire(PodDisruptionBudget, {"metadata": metadata, "spec": whole, "status": status or {}})


def created(**spec: Any) -> Unstructured:
    metadata = {"name": "web", "namespace": "default"}
    whole = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    wire = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": whole}
    return Unstructured(wire)


# The status


@pytest.mark.parametrize(
    ("spec", "replicas", "expected"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": "50%"}, 5, 3),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "30%"}, 5, 3),
        ({"maxUnavailable": 9}, 5, 0),
        ({}, 5, 0),
    ],
)
def test_the_healthy_pods_that_a_budget_needs(spec: dict[str, Any], replicas: int, expected: int) -> None:
    assert desired_healthy(budget(**spec).spec, replicas) == expected


def test_only_a_number_of_available_pods_needs_no_scale() -> None:
    assert not needs_scale(budget(minAvailable=1).spec)
    assert needs_scale(budget(minAvailable="1%").spec)
    assert needs_scale(budget(maxUnavailable=1).spec)


def test_pods_that_are_ready_and_stay_are_healthy() -> None:
    pods = [pod("a", ready=True), pod("b", ready=False), pod("c", ready=True, deleting=NOW), pod("d", ready=True)]
    evicted = budget(minAvailable=1, status={"disruptedPods": {"d": wire_time(at(-10)), "c": wire_time(at(-10))}})
    disruptions = disrupted_pods(evicted, pods, NOW)

    status = status_of(evicted, pods, Scale(4), disruptions=disruptions, now=NOW)

    assert (status.current_healthy, status.desired_healthy, status.expected_pods) == (1, 1, 4)
    assert status.disruptions_allowed == 0
    assert status.disrupted_pods == {"d": at(-10)}
    assert status.observed_generation == 2
    assert [(one.type, one.status, one.reason) for one in status.conditions] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]
    assert disruptions.until_expiry == 110


def test_an_evicted_pod_that_is_not_deleted_counts_again_after_two_minutes() -> None:
    evicted = budget(minAvailable=0, status={"disruptedPods": {"a": wire_time(at(-121)), "gone": wire_time(NOW)}})
    disruptions = disrupted_pods(evicted, [pod("a", ready=True)], NOW)
    assert (disruptions.pending, [one.name for one in disruptions.expired]) == ({}, ["a"])
    assert status_of(evicted, [pod("a", ready=True)], Scale(1), disruptions=disruptions, now=NOW).current_healthy == 1


def test_a_budget_without_pods_allows_nothing() -> None:
    status = status_of(budget(minAvailable=0), [], Scale(0), disruptions=disrupted_pods(budget(), [], NOW), now=NOW)
    assert status.disruptions_allowed == 0


def test_a_budget_that_fails_keeps_its_numbers_and_allows_nothing() -> None:
    status = failed_status(budget(status={"currentHealthy": 3, "disruptionsAllowed": 2}), "no scale", NOW)
    assert (status.current_healthy, status.disruptions_allowed) == (3, 0)
    assert [(one.reason, one.message) for one in status.conditions] == [("SyncFailed", "no scale")]


def test_a_selector_is_printed_as_in_go() -> None:
    wire = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
    assert format_selector(from_wire(LabelSelector, wire)) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[v],},},}"
    )


# Evictions


async def evict(cluster: EmbeddedWorkloadCluster) -> str:
    running = [one for one in await cluster.pods() if one.metadata.deletion_timestamp is None and one.spec.node_name]
    await cluster.client.evict(running[0].name)
    return running[0].name


async def test_evictions_stop_at_the_budget_and_go_on_with_new_pods() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(created(minAvailable=2))
        await cluster.client.create(deployment("web", replicas=3))
        await settle()
        await cluster.start()
        await evict(cluster)
        with pytest.raises(TooManyRequests, match="violate the pod's disruption budget"):
            await evict(cluster)
        await settle()
        await cluster.remove_deleted()
        await cluster.start()
        await evict(cluster)


async def test_an_eviction_whose_deletion_is_lost_is_forgotten_after_two_minutes() -> None:
    """A crash of the server between the budget and the pod: the budget must not stay exhausted."""
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(created(minAvailable=2))
        await cluster.client.create(deployment("web", replicas=3))
        await settle()
        await cluster.start()
        (name, *_) = sorted(one.name for one in await cluster.pods())
        recorded = (await cluster.get("poddisruptionbudgets.policy", "web"))["status"] | {
            "disruptionsAllowed": 0,
            "disruptedPods": {name: "2027-01-15T08:00:00Z"},
        }
        await cluster.client.patch("poddisruptionbudgets.policy", "web", {"status": recorded}, subresource="status")
        await asyncio.sleep(100)
        status = (await cluster.get("poddisruptionbudgets.policy", "web"))["status"]
        assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 0)
        await asyncio.sleep(30)
        status = (await cluster.get("poddisruptionbudgets.policy", "web"))["status"]
        assert (status["currentHealthy"], status["disruptionsAllowed"]) == (3, 1)
        assert "disruptedPods" not in status
        reasons = {one["reason"] for one in await cluster.all("events")}
        assert "NotDeleted" in reasons


async def test_a_restart_of_the_controller_continues_with_the_same_budget() -> None:
    cluster = EmbeddedWorkloadCluster()
    async with cluster.controllers():
        await cluster.client.create(created(maxUnavailable=1))
        await cluster.client.create(deployment("web", replicas=3))
        await settle()
        await cluster.start()
        await settle()
    await evict(cluster)
    before = (await cluster.get("poddisruptionbudgets.policy", "web"))["status"]
    assert before["disruptionsAllowed"] == 0
    async with cluster.controllers():
        await settle()
        after = (await cluster.get("poddisruptionbudgets.policy", "web"))["status"]
        assert (after["currentHealthy"], after["desiredHealthy"], after["disruptionsAllowed"]) == (2, 2, 0)
        assert "disruptedPods" not in after


async def test_all_pods_of_a_node_are_evicted_one_after_the_other() -> None:
    """What kubectl drain does: cordon the node, then evict and repeat while a budget forbids it."""
    async with running_cluster(nodes=2, workloads=True) as cluster:
        await cluster.client.create(created(minAvailable=3))
        await cluster.client.create(deployment("web", replicas=4))
        await settle()
        await cluster.client.patch("nodes", "node-1", {"spec": {"unschedulable": True}})
        refused = 0
        for _ in range(200):
            left = [one for one in await cluster.pods() if one["spec"].get("nodeName") == "node-1"]
            if not left:
                break
            for one in left:
                try:
                    await cluster.client.evict(one.name)
                except TooManyRequests:
                    refused += 1
            await asyncio.sleep(5)
        pods = await cluster.pods()
        assert {one["spec"]["nodeName"] for one in pods} == {"node-2"}
        assert [conditions(one)["Ready"] for one in pods] == ["True"] * 4
        assert refused


# Stale conditions


def target(**condition: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", **condition}]}


def test_only_a_disruption_that_does_not_come_is_stale() -> None:
    since = {"lastTransitionTime": wire_time(at(-100))}
    assert until_stale(pod("a", status=target(**since)), NOW) == 20
    assert until_stale(pod("a", status=target(**since)), at(60)) == 0
    assert until_stale(pod("a", status=target(**since), deleting=NOW), NOW) is None
    assert until_stale(pod("a", status=target(**since), phase="Failed"), NOW) is None
    assert until_stale(pod("a", status=target(**since, reason="TerminationByKubelet")), NOW) is None
    assert until_stale(pod("a", status=target(**since) | {"conditions": []}), NOW) is None


async def test_a_stale_condition_becomes_false_after_two_minutes() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(deployment("web", replicas=1))
        await settle()
        await cluster.start()
        (one,) = await cluster.pods()
        now = "2027-01-15T08:00:00Z"
        reason = {"type": "DisruptionTarget", "status": "True", "reason": "X", "lastTransitionTime": now}
        await cluster.write_status(one, "Running", conditions=[reason])
        await asyncio.sleep(100)
        assert conditions(await cluster.get("pods", one.name))["DisruptionTarget"] == "True"
        await asyncio.sleep(30)
        found = await cluster.get("pods", one.name)
        assert conditions(found)["DisruptionTarget"] == "False"
        (condition,) = (each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget")
        assert "reason" not in condition
