"""Pods on simulated nodes, on the embedded server and on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from konverge.errors import NotFound
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge_cluster.nodes import Behavior, SimulatedNode, SimulatedNodes
from ownerships import virtual_clock
from running_clusters import conditions, deployment, pod, running_cluster, state

READY = {
    "PodReadyToStartContainers": "True",
    "Initialized": "True",
    "Ready": "True",
    "ContainersReady": "True",
    "PodScheduled": "True",
}


async def test_nodes_register_as_kubelets_do_and_become_schedulable() -> None:
    async with running_cluster(heartbeat=10.0) as cluster:
        await settle()
        nodes = list(await cluster.client.list("nodes"))
        assert [node.name for node in nodes] == ["node-1", "node-2"]
        assert {conditions(node)["Ready"] for node in nodes} == {"True"}
        assert all("taints" not in node["spec"] for node in nodes)
        first = await cluster.client.get("leases.coordination.k8s.io", "node-1", namespace="kube-node-lease")
        await asyncio.sleep(25)
        later = await cluster.client.get("leases.coordination.k8s.io", "node-1", namespace="kube-node-lease")
        assert later["spec"]["renewTime"] > first["spec"]["renewTime"]
        assert later.metadata["ownerReferences"][0]["uid"] == nodes[0].uid


async def test_a_pod_is_scheduled_runs_and_is_ready() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("web"))
        await settle()
        found = await cluster.pod("web")
        status = found["status"]
        assert (status["phase"], conditions(found)) == ("Running", READY)
        assert all(status[part] for part in ("hostIP", "hostIPs", "podIP", "podIPs", "startTime"))
        assert status["qosClass"] == "BestEffort"
        assert state(found)["state"]["running"]["startedAt"] == status["startTime"]
        assert (state(found)["ready"], state(found)["started"], state(found)["restartCount"]) == (True, True, 0)
        assert status["observedGeneration"] == found.metadata["generation"]
        assert sorted(await cluster.events("web")) == [
            "Created: Container created",
            'Pulled: Container image "app:1" already present on machine',
            f"Scheduled: Successfully assigned default/web to {found['spec']['nodeName']}",
            "Started: Container started",
        ]


async def test_a_settled_pod_costs_no_writes() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("web"))
        await settle()
        before = (await cluster.pod("web")).resource_version
        await asyncio.sleep(3600)
        assert (await cluster.pod("web")).resource_version == before


async def test_every_pod_has_an_address_of_its_own() -> None:
    async with running_cluster() as cluster:
        for number in range(20):
            await cluster.client.create(pod(f"p{number}"))
        await settle()
        addresses = {one["status"]["podIP"] for one in await cluster.pods()}
        assert len(addresses) == 20
        nodes = [one["spec"]["nodeName"] for one in await cluster.pods()]
        assert sorted(nodes.count(name) for name in set(nodes)) == [10, 10]


async def test_a_deleted_pod_reports_its_end_and_is_removed() -> None:
    async with running_cluster() as cluster:
        cluster.nodes.program(Behavior(stops_after=5))
        await cluster.client.create(pod("web", finalizers=["test.konverge.dev/hold"]))
        await settle()
        await cluster.client.delete("pods", "web")
        await asyncio.sleep(4)
        assert conditions(await cluster.pod("web"))["Ready"] == "True"
        await asyncio.sleep(2)
        found = await cluster.pod("web")
        assert found["status"]["phase"] == "Failed"
        assert state(found)["state"]["terminated"]["exitCode"] == 143
        assert conditions(found)["Ready"] == "False"
        assert found.metadata["deletionGracePeriodSeconds"] == 0
        assert "Killing: Stopping container c" in await cluster.events("web")
        await cluster.client.patch("pods", "web", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await cluster.pod("web")


async def test_a_container_that_does_not_stop_is_killed_at_the_end_of_its_grace() -> None:
    async with running_cluster() as cluster:
        cluster.nodes.program(Behavior(stops_after=500))
        await cluster.client.create(pod("web", terminationGracePeriodSeconds=20))
        await settle()
        await cluster.client.delete("pods", "web")
        await asyncio.sleep(19)
        assert (await cluster.pod("web"))["status"]["phase"] == "Running"
        await asyncio.sleep(2)
        assert await cluster.pods() == []


async def test_a_deployment_becomes_ready_and_is_deleted_with_its_pods() -> None:
    async with running_cluster(workloads=True, garbage=True) as cluster:
        await cluster.client.create(deployment("web", replicas=3))
        await settle()
        found = await cluster.client.get("deployments.apps", "web")
        assert found["status"]["availableReplicas"] == 3
        await cluster.client.delete("deployments.apps", "web")
        await settle()
        assert await cluster.pods() == []
        assert list(await cluster.client.list("replicasets.apps")) == []


async def test_a_namespace_with_a_deployment_is_deleted_with_its_content() -> None:
    async with running_cluster(workloads=True, garbage=True) as cluster:
        wish = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        await cluster.client.create(Unstructured(wish))
        web = deployment("web", replicas=3)
        web.metadata["namespace"] = "shop"
        await cluster.client.create(web)
        await settle()
        assert {conditions(one)["Ready"] for one in await cluster.client.list("pods", namespace="shop")} == {"True"}

        cluster.nodes.program(Behavior(stops_after=10))
        await cluster.client.delete("namespaces", "shop")
        await asyncio.sleep(8)
        assert (await cluster.client.get("namespaces", "shop"))["status"]["phase"] == "Terminating"
        assert len(await cluster.client.list("deployments.apps", namespace="shop")) == 1  # pods are deleted first
        await asyncio.sleep(12)
        with pytest.raises(NotFound):
            await cluster.client.get("namespaces", "shop")
        assert list(await cluster.client.list("pods", namespace="shop")) == []


async def test_with_foreground_deletion_the_deployment_is_removed_last() -> None:
    async with running_cluster(workloads=True, garbage=True) as cluster:
        cluster.nodes.program(Behavior(stops_after=10))
        await cluster.client.create(deployment("web", replicas=2))
        await settle()
        await cluster.client.delete("deployments.apps", "web", propagation="Foreground")
        await asyncio.sleep(5)
        assert (await cluster.client.get("deployments.apps", "web")).metadata["finalizers"] == ["foregroundDeletion"]
        assert all("deletionTimestamp" in one.metadata for one in await cluster.pods())
        await asyncio.sleep(10)
        with pytest.raises(NotFound):
            await cluster.client.get("deployments.apps", "web")
        assert await cluster.pods() == []


async def test_a_job_succeeds_after_a_moment() -> None:
    async with running_cluster(workloads=True) as cluster:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}}
        spec = {"completions": 2, "template": template}
        wish = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "default"}}
        await cluster.client.create(Unstructured({**wish, "spec": spec}))
        await asyncio.sleep(10)
        found = await cluster.client.get("jobs.batch", "sum")
        assert found["status"]["succeeded"] == 2
        assert conditions(found)["Complete"] == "True"


async def test_an_unschedulable_pod_waits_for_a_new_node() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("web", nodeSelector={"disk": "fast"}))
        await settle()
        found = await cluster.pod("web")
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        available, no_help = "0/2 nodes are available: 2", "Preemption is not helpful for scheduling"
        reason = "node(s) didn't match Pod's node affinity/selector"
        words = f"{available} {reason}. no new claims to deallocate, preemption: {available} {no_help}."
        assert condition["message"] == words
        assert await cluster.events("web") == [f"FailedScheduling: {words}"]

        await cluster.client.patch("nodes", "node-2", {"metadata": {"labels": {"disk": "fast"}}})
        await settle()
        found = await cluster.pod("web")
        assert (found["spec"]["nodeName"], conditions(found)) == ("node-2", READY)


async def test_a_pod_waits_for_resources_that_another_pod_frees() -> None:
    async with running_cluster(nodes=1, capacity={"cpu": "2"}) as cluster:
        wanted = {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "1500m"}}}]}
        await cluster.client.create(pod("one", **wanted))
        await settle()
        await cluster.client.create(pod("two", **wanted))
        await settle()
        assert "nodeName" not in (await cluster.pod("two"))["spec"]
        available, no_victims = "0/1 nodes are available: 1", "No preemption victims found for incoming pod"
        message = f"{available} Insufficient cpu. no new claims to deallocate, preemption: {available} {no_victims}."
        assert (await cluster.events("two")) == [f"FailedScheduling: {message}"]
        await cluster.client.delete("pods", "one")
        await settle()
        assert conditions(await cluster.pod("two")) == READY


async def test_a_stopped_node_becomes_unreachable_and_its_pods_are_replaced() -> None:
    async with running_cluster(workloads=True) as cluster:
        await cluster.client.create(deployment("web", replicas=2))
        await settle()
        cluster.nodes.stop_node("node-1")
        await asyncio.sleep(30)
        assert conditions(await cluster.client.get("nodes", "node-1"))["Ready"] == "True"
        await asyncio.sleep(25)
        node = await cluster.client.get("nodes", "node-1")
        assert conditions(node)["Ready"] == "Unknown"
        assert [(one["key"], one["effect"]) for one in node["spec"]["taints"]] == [
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        ]
        lost = [one for one in await cluster.pods() if one["spec"]["nodeName"] == "node-1"]
        assert [conditions(one)["Ready"] for one in lost] == ["False"]
        assert (await cluster.client.get("deployments.apps", "web"))["status"]["readyReplicas"] == 1

        await asyncio.sleep(310)
        found = await cluster.client.get("deployments.apps", "web")
        assert found["status"]["readyReplicas"] == 2
        # No kubelet is there to terminate the lost pod.
        assert "deletionTimestamp" in (await cluster.pod(lost[0].name)).metadata

        cluster.nodes.start_node("node-1")
        await settle()
        assert lost[0].name not in [one.name for one in await cluster.pods()]
        node = await cluster.client.get("nodes", "node-1")
        assert (conditions(node)["Ready"], node["spec"].get("taints")) == ("True", None)


async def test_a_node_that_starts_again_in_time_keeps_its_pods() -> None:
    async with running_cluster(nodes=1) as cluster:
        await cluster.client.create(pod("web"))
        await settle()
        cluster.nodes.stop_node("node-1")
        await asyncio.sleep(60)
        assert conditions(await cluster.pod("web"))["Ready"] == "False"
        cluster.nodes.start_node("node-1")
        await settle()
        found = await cluster.pod("web")
        assert (conditions(found), state(found)["restartCount"]) == (READY, 0)


async def test_pods_of_a_deleted_node_are_deleted() -> None:
    async with running_cluster(workloads=True) as cluster:
        await cluster.client.create(deployment("web", replicas=2))
        await settle()
        await cluster.client.delete("nodes", "node-1")
        await asyncio.sleep(30)
        assert len(await cluster.pods()) == 2
        await asyncio.sleep(30)
        assert [one["spec"]["nodeName"] for one in await cluster.pods()] == ["node-2", "node-2"]
        assert (await cluster.client.get("deployments.apps", "web"))["status"]["readyReplicas"] == 2


async def test_a_taint_evicts_pods_when_their_toleration_expires() -> None:
    async with running_cluster() as cluster:
        tolerating = {"key": "work", "operator": "Exists", "effect": "NoExecute"}
        place = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
        await cluster.client.create(pod("other", **place))
        await cluster.client.create(pod("patient", **place, tolerations=[{**tolerating, "tolerationSeconds": 60}]))
        await cluster.client.create(pod("calm", **place, tolerations=[tolerating]))
        await settle()
        taint = {"key": "work", "value": "on", "effect": "NoExecute"}
        await cluster.client.patch("nodes", "node-1", {"spec": {"taints": [taint]}})
        await asyncio.sleep(30)
        assert [one.name for one in await cluster.pods()] == ["calm", "patient"]
        await asyncio.sleep(40)
        assert [one.name for one in await cluster.pods()] == ["calm"]
        assert "TaintManagerEviction: Marking for deletion Pod default/other" in await cluster.events("other")


async def test_a_cordoned_node_gets_no_pods() -> None:
    async with running_cluster() as cluster:
        await cluster.client.patch("nodes", "node-1", {"spec": {"unschedulable": True}})
        await settle()
        node = await cluster.client.get("nodes", "node-1")
        assert [one["key"] for one in node["spec"]["taints"]] == ["node.kubernetes.io/unschedulable"]
        await cluster.client.create(pod("one"))
        await cluster.client.create(pod("two"))
        await settle()
        assert {one["spec"]["nodeName"] for one in await cluster.pods()} == {"node-2"}
        await cluster.client.patch("nodes", "node-1", {"spec": {"unschedulable": None}})
        await settle()
        assert "taints" not in (await cluster.client.get("nodes", "node-1"))["spec"]


async def test_a_later_behavior_applies_to_existing_pods() -> None:
    async with running_cluster() as cluster:
        cluster.nodes.program(Behavior(image="bad:*", pull_fails=True))
        await cluster.client.create(pod("web", image="bad:1"))
        await asyncio.sleep(10)
        found = await cluster.pod("web")
        assert (found["status"]["phase"], state(found)["state"]["waiting"]["reason"]) == ("Pending", "ImagePullBackOff")
        cluster.nodes.clear_program()
        await settle()
        assert conditions(await cluster.pod("web")) == READY


async def test_an_annotation_sets_the_behavior_and_an_invalid_one_is_reported() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("slow", annotations={"nodes.konverge.dev/ready-after": "30"}))
        await cluster.client.create(pod("odd", annotations={"nodes.konverge.dev/ready-after": "soon"}))
        await asyncio.sleep(29)
        assert conditions(await cluster.pod("slow"))["Ready"] == "False"
        await asyncio.sleep(2)
        assert conditions(await cluster.pod("slow"))["Ready"] == "True"
        assert "UnknownBehavior: ready-after takes a number, got 'soon'" in await cluster.events("odd")

        await cluster.client.patch(
            "pods", "odd", {"metadata": {"annotations": {"nodes.konverge.dev/ready-after": "1"}}}
        )
        await asyncio.sleep(2)
        assert conditions(await cluster.pod("odd"))["Ready"] == "True"


async def test_pods_of_other_nodes_are_left_alone() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("static", nodeName="elsewhere"))
        await cluster.client.create(pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await cluster.client.create(pod("foreign", schedulerName="other"))
        await settle()
        assert {one["status"]["phase"] for one in await cluster.pods()} == {"Pending"}
        assert "nodeName" not in (await cluster.pod("gated"))["spec"]
        await cluster.client.patch("pods", "gated", {"spec": {"schedulingGates": None}})
        await settle()
        assert conditions(await cluster.pod("gated"))["Ready"] == "True"


async def test_a_pod_with_a_readiness_gate_is_ready_when_its_condition_is_true() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("web", readinessGates=[{"conditionType": "example.com/lit"}]))
        await settle()
        found = await cluster.pod("web")
        assert (conditions(found)["ContainersReady"], conditions(found)["Ready"]) == ("True", "False")
        gate = {"type": "example.com/lit", "status": "True"}
        await cluster.client.patch(
            "pods", "web", {"status": {"conditions": [gate]}}, patch_type="strategic", subresource="status"
        )
        await settle()
        assert conditions(await cluster.pod("web"))["Ready"] == "True"


async def test_restarted_simulated_nodes_continue_where_the_last_ones_stopped() -> None:
    async with running_cluster(nodes=1) as cluster:
        await cluster.client.create(pod("web"))
        await settle()
        before = await cluster.pod("web")
        server = cluster.server
    nodes = [SimulatedNode("node-1", 0)]
    other = SimulatedNodes(cluster.client, nodes=nodes, clock=virtual_clock, heartbeat=0)
    async with other.running():
        await cluster.client.create(pod("more"))
        await settle()
        assert (await cluster.pod("web")).resource_version == before.resource_version
        assert (await cluster.pod("more"))["status"]["podIP"] != before["status"]["podIP"]
    assert server is cluster.server


def test_an_unknown_node_cannot_be_stopped() -> None:
    nodes = SimulatedNodes(None, nodes=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no node 'other' \\(there are: node-1, node-2\\)"):
        nodes.stop_node("other")
