"""The WebApp operator on virtual time: from an object to running pods, updates, repairs and pruning."""

from __future__ import annotations

import asyncio

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Service
from konverge.testing import settle
from konverge_operators.webapp.api import Phase, WebApp
from webapps import transitions, webapp, webapp_environment

CHILDREN = ["Deployment web", "PodDisruptionBudget web", "Service web"]


async def test_an_application_becomes_ready_in_phase_conditions_and_events() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=3))
        app = await env.reaches(Phase.READY)
        await asyncio.sleep(5)

        assert await env.children() == CHILDREN
        assert (app.status.replicas, app.status.ready_replicas, app.status.available_replicas) == (3, 3, 3)
        assert (app.status.last_error, app.status.message) == ("", "3 of 3 replicas are available")
        assert {one.type: one.status for one in app.status.conditions} == {
            "Ready": "True",
            "Reconciling": "False",
            "Stalled": "False",
            "ApplicationReady": "True",
            "Available": "True",
            "Progressing": "False",
            "Degraded": "False",
            "ForeignFields": "False",
        }
        assert all(one.observed_generation == app.metadata.generation for one in app.status.conditions)
        assert [reason for reason, _ in await env.events()] == [
            "Created",
            "Reconciling",
            "WaitingForPods",
            "ComponentReady",
            "Ready",
        ]
        assert transitions(env.lifecycle) == {
            "Created -> Reconciling": 1,
            "Reconciling -> WaitingForPods": 1,
            "WaitingForPods -> Ready": 1,
        }
        owners = (await env.deployment()).metadata.owner_references or []
        assert [(one.uid, one.controller) for one in owners] == [(app.uid, True)]


async def test_an_unchanged_application_causes_no_writes_for_hours_and_after_a_restart() -> None:
    async with webapp_environment() as env:
        async with env.operating():
            await env.client.create(webapp())
            await env.reaches(Phase.READY)
            await asyncio.sleep(60)
            env.clear_requests()
            await asyncio.sleep(3600)
            assert env.writes == []
        async with env.operating():
            await asyncio.sleep(100)
            assert env.writes == []


async def test_scaling_up_and_down_passes_the_phase_scaling() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)

        await env.client.scale(WebApp, "web", 5)
        await env.reaches(Phase.SCALING)
        app = await env.reaches(Phase.READY)
        assert app.status.available_replicas == 5
        assert await env.client.get_scale(WebApp, "web") == 5

        await env.change(replicas=1)
        app = await env.reaches(Phase.READY)
        assert app.status.available_replicas == 1
        assert transitions(env.lifecycle)["Scaling -> Ready"] == 2


async def test_a_new_image_is_rolled_out_while_the_application_stays_available() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=4))
        await env.reaches(Phase.READY)

        await env.change(image="nginx:1.27")
        app = await env.reaches(Phase.UPDATING)
        assert next(one for one in app.status.conditions if one.type == "Available").status == "True"
        app = await env.reaches(Phase.READY)

        assert app.status.last_good_image == "nginx:1.27"
        assert transitions(env.lifecycle)["Updating -> Ready"] == 1


async def test_children_deleted_or_edited_by_hand_are_restored_in_one_reconcile() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)

        await env.client.delete(Deployment, "web")
        await env.client.delete(Service, "web")
        await settle()
        assert await env.children() == CHILDREN
        await env.reaches(Phase.READY)

        await env.client.scale(Deployment, "web", 7)
        await env.client.patch(Service, "web", {"spec": {"selector": {"app.kubernetes.io/name": "other"}}})
        await settle()
        assert (await env.deployment()).spec.replicas == 2
        service = await env.client.get(Service, "web")
        assert service.spec.selector["app.kubernetes.io/name"] == "webapp"
        await env.reaches(Phase.READY)


async def test_children_that_are_no_longer_requested_are_pruned() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.change(ingress={"host": "shop.example.com"}, autoscaling={"maxReplicas": 4})
        await env.reaches(Phase.READY)
        assert await env.children() == [
            "Deployment web",
            "HorizontalPodAutoscaler web",
            "Ingress web",
            "PodDisruptionBudget web",
            "Service web",
        ]

        await env.change(ingress=None, autoscaling=None)
        await env.reaches(Phase.READY)
        assert await env.children() == CHILDREN
