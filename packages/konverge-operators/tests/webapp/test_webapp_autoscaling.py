"""Which party sets the number of replicas, the WebApp or its autoscaler, and the switch between them."""

from __future__ import annotations

import asyncio

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.testing import settle
from konverge_operators.webapp.api import Phase
from webapps import WebAppEnvironment, webapp, webapp_environment


async def record_sizes(env: WebAppEnvironment, seen: list[int | None]) -> None:
    """Record every size of the Deployment."""
    async for event in env.client.watch(Deployment, namespace="default"):
        if event.type in ("ADDED", "MODIFIED"):
            size = event.object.spec.replicas
            if not seen or seen[-1] != size:
                seen.append(size)


async def scale_as_autoscaler(env: WebAppEnvironment, size: int) -> None:
    await env.client.using(field_manager="kube-controller-manager").scale(Deployment, "web", size)
    await settle()


async def test_switching_autoscaling_on_and_off_never_reduces_the_replicas() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=5))
        await env.reaches(Phase.READY)
        seen: list[int | None] = []
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(record_sizes(env, seen))

            await env.change(autoscaling={"minReplicas": 2, "maxReplicas": 9})
            await settle()
            assert (await env.deployment()).spec.replicas == 5
            await scale_as_autoscaler(env, 8)
            await asyncio.sleep(120)
            assert (await env.deployment()).spec.replicas == 8
            await env.change(env={"A": "b"})
            await env.reaches(Phase.READY)
            await env.change(autoscaling=None)
            await env.reaches(Phase.READY)

            watching.cancel()
        assert seen == [5, 8, 5]


async def test_a_new_application_with_autoscaling_starts_within_its_bounds() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=1, autoscaling={"minReplicas": 3, "maxReplicas": 9}))
        await env.reaches(Phase.READY)
        assert (await env.deployment()).spec.replicas == 3
        await scale_as_autoscaler(env, 6)
        await env.reaches(Phase.READY)
        assert (await env.deployment()).spec.replicas == 6


async def test_a_deployment_that_is_deleted_under_autoscaling_is_recreated_with_its_size() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=1, autoscaling={"minReplicas": 1, "maxReplicas": 9}))
        await env.reaches(Phase.READY)
        await scale_as_autoscaler(env, 6)
        await asyncio.sleep(60)
        await env.client.delete(Deployment, "web")
        await settle()
        assert (await env.deployment()).spec.replicas == 6


async def test_the_autoscaler_targets_the_deployment_and_follows_the_spec() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(autoscaling={"maxReplicas": 9, "cpuPercent": 50}))
        await env.reaches(Phase.READY)
        await env.change(autoscaling={"maxReplicas": 7})
        await settle()
        scaler = await env.client.get(HorizontalPodAutoscaler, "web")
        assert (scaler.spec.scale_target_ref.kind, scaler.spec.scale_target_ref.name) == ("Deployment", "web")
        assert (scaler.spec.min_replicas, scaler.spec.max_replicas) == (1, 7)
