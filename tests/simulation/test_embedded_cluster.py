"""The whole embedded cluster on virtual time: workloads, nodes, garbage collection, clocks."""

from __future__ import annotations

import asyncio
import time

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, ObjectMeta, Result, controller_for, crd_for
from konverge.client import has_condition, is_deployment_complete
from konverge.errors import WaitTimeout
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from konverge.k8s.batch.v1 import Job, JobSpec
from konverge.k8s.core.v1 import Container, Namespace, Pod, PodSpec, PodTemplateSpec, Secret, ServiceAccount
from konverge.k8s.meta.v1 import LabelSelector
from konverge.testing import run_in_virtual_time
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import TestCluster


def deployment(name: str, *, image: str = "nginx:1.25", replicas: int = 3, **spec: object) -> Deployment:
    labels = {"app": name}
    pod = PodSpec(containers=[Container(name="web", image=image)])
    return Deployment(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
            **spec,  # type: ignore[arg-type]
        ),
    )


async def test_a_deployment_becomes_ready_and_its_pods_are_deleted_with_it(cluster: TestCluster) -> None:
    client = cluster.client()
    await cluster.settle()
    await client.create(deployment("web"))
    await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=60)
    pods = await client.list(Pod, namespace="default")
    assert len({pod.status.pod_ip for pod in pods}) == 3
    assert {pod.spec.node_name for pod in pods} == {"node-1", "node-2", "node-3"}

    await client.delete(Deployment, "web")
    await cluster.settle()
    assert not list(await client.list(ReplicaSet, namespace="default"))
    assert not list(await client.list(Pod, namespace="default"))


async def test_events_of_many_objects_do_not_crowd_each_other_out(cluster: TestCluster) -> None:
    client = cluster.client()
    await cluster.settle()
    for number in range(40):
        await client.create(deployment(f"web-{number}", replicas=1))
    await cluster.settle()
    events = await client.list("events", namespace="default")
    scaled = {one["involvedObject"]["name"] for one in events if one["reason"] == "ScalingReplicaSet"}
    assert scaled == {f"web-{number}" for number in range(40)}
    assert len([one for one in events if one["reason"] == "Started"]) == 40


async def test_a_rollout_that_never_becomes_ready_fails_at_its_deadline_and_can_be_undone(
    cluster: TestCluster,
) -> None:
    client = cluster.client()
    cluster.program(Behavior(image="bad:*", never_ready=True))
    await cluster.settle()
    await client.create(deployment("web", progress_deadline_seconds=60))
    await cluster.settle()
    await client.patch(
        Deployment,
        "web",
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "bad:1"}]}}}},
        patch_type="strategic",
    )
    await client.wait_for(Deployment, "web", has_condition("Progressing", "False"), timeout=600)
    stuck = await client.get(Deployment, "web")
    assert stuck.status.available_replicas == 3  # the old pods still serve

    await client.patch(
        Deployment,
        "web",
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.25"}]}}}},
        patch_type="strategic",
    )
    await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=60)


async def test_a_job_completes(cluster: TestCluster) -> None:
    client = cluster.client()
    await cluster.settle()
    pod = PodSpec(containers=[Container(name="work", image="busybox")], restart_policy="Never")
    await client.create(
        Job(metadata=ObjectMeta(name="job"), spec=JobSpec(template=PodTemplateSpec(spec=pod), completions=3))
    )
    done = await client.wait_for(Job, "job", has_condition("Complete"), timeout=600)
    assert done is not None
    assert done.status.succeeded == 3


async def test_a_namespace_gets_its_defaults_and_is_deleted_with_its_content(cluster: TestCluster) -> None:
    client = cluster.client("shop")
    await client.create(Namespace(metadata=ObjectMeta(name="shop")))
    await cluster.settle()
    assert [one.name for one in await client.list(ServiceAccount, namespace="shop")] == ["default"]
    shop = deployment("web")
    shop.metadata.namespace = "shop"
    await client.create(shop)
    await client.create(Secret(metadata=ObjectMeta(name="s", namespace="shop")))
    await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=60)

    await client.delete(Namespace, "shop")
    await cluster.settle()
    assert [one.name for one in await client.list(Namespace) if one.name == "shop"] == []
    assert not list(await client.list(Pod, namespace="shop"))


async def test_settle_times_out_when_changes_never_stop(cluster: TestCluster) -> None:
    client = cluster.client()

    async def write_forever() -> None:
        while True:
            await client.create(Secret(metadata=ObjectMeta(generate_name="s-", namespace="default")))
            await asyncio.sleep(5)

    task = asyncio.ensure_future(write_forever())
    with pytest.raises(WaitTimeout, match="not settled"):
        await cluster.settle(limit=120)
    task.cancel()


def test_an_operator_with_a_requeue_of_30_s_simulates_a_day_within_seconds() -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(asyncio.get_running_loop().time())
        await ctx.apply(deployment(obj.name))
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)
        return Result.requeue(after=30)

    async def simulate() -> list[str]:
        world = await world_with_gadgets()
        await world.client.create(gadget("web"))
        async with operating(world, controller_for(Gadget).owns(Deployment).build(reconcile)):
            await asyncio.sleep(24 * 3600)
        return world.writes

    began = time.process_time()
    writes = run_in_virtual_time(simulate(), debug=False)
    assert time.process_time() - began < 10  # of CPU; about 2 s on an idle machine
    assert len(runs) >= 24 * 120
    assert len([write for write in writes if "deployments" in write]) == 1


async def test_an_operator_on_the_cluster(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(Gadget))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        child = await ctx.apply(deployment(obj.name, replicas=obj.spec.size))
        obj.status.parts = (child.status.available_replicas if child.status else None) or 0
        await ctx.update_status(obj)

    async with cluster.operator(controller_for(Gadget).owns(Deployment).build(reconcile)):
        await cluster.settle()
        await client.create(gadget("web", size=2))
        await cluster.settle()
        assert (await client.get(Gadget, "web")).status.parts == 2
