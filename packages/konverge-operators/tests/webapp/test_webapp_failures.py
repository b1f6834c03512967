"""Failures of a WebApp: failed rollouts, errors, invalid specs, lost pods, missing events, deletion."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from konverge import NotFound, Unstructured, controller_for
from konverge.cache import CacheOptions
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Pod, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import find_condition
from konverge.testing import settle
from konverge.testing.faults import status_response
from konverge.triggers import anything
from konverge_operators.manifests import HTTP_ROUTE, POD_MONITOR
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import KINDS
from konverge_operators.webapp.reconciler import WebAppReconciler
from webapps import WebAppEnvironment, transitions, webapp, webapp_environment


def reason_of(app: WebApp, type_: str = "Degraded") -> tuple[str, str]:
    found = find_condition(app.status.conditions, type_)
    assert found is not None
    return found.status, found.reason


# Rollouts


async def test_an_application_whose_rollout_fails_is_degraded_and_still_available() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=4, progressDeadlineSeconds=60))
        await env.reaches(Phase.READY)
        await env.change(image="nginx:bad", progressDeadlineSeconds=60)
        await env.reaches(Phase.UPDATING)
        app = await env.reaches(Phase.DEGRADED, within=300)

        assert reason_of(app) == ("True", "RolloutFailed")
        assert reason_of(app, "Available")[0] == "True"
        await env.change(image="nginx:1.26")
        app = await env.reaches(Phase.READY)
        assert reason_of(app)[0] == "False"


async def test_with_rollback_the_last_good_image_runs_until_the_spec_has_another_one() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=4, rollback=True, progressDeadlineSeconds=60))
        await env.reaches(Phase.READY)
        await env.change(image="nginx:bad")

        async def rolled_back() -> bool:
            return reason_of(await env.app())[1] == "RolledBack"

        await env.until(rolled_back, within=300)
        await asyncio.sleep(60)
        app, deployment = await env.app(), await env.deployment()
        assert deployment.spec.template.spec is not None
        assert deployment.spec.template.spec.containers[0].image == "nginx:1.25"
        assert deployment.status.available_replicas == deployment.status.updated_replicas == 4
        assert (app.status.phase, app.spec.image) == (Phase.DEGRADED, "nginx:bad")
        assert (app.status.failed_image, app.status.last_good_image) == ("nginx:bad", "nginx:1.25")
        assert "RolledBack" in [reason for reason, _ in await env.events()]

        await env.change(image="nginx:1.26")
        app = await env.reaches(Phase.READY)
        assert (app.status.failed_image, app.status.last_good_image) == ("", "nginx:1.26")


async def test_without_a_good_image_there_is_no_rollback() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(image="nginx:bad", rollback=True, progressDeadlineSeconds=60))
        app = await env.reaches(Phase.DEGRADED, within=300)
        assert reason_of(app) == ("True", "RolloutFailed")
        assert app.status.failed_image == ""


async def test_an_application_with_lost_pods_is_degraded_until_they_are_replaced() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(replicas=3))
        await env.reaches(Phase.READY)
        pods = await env.client.list(Pod, namespace="default")
        await env.client.delete(pods[0], grace_period=0)
        app = await env.reaches(Phase.DEGRADED)
        assert reason_of(app) == ("True", "PodsLost")
        await env.reaches(Phase.READY)


# Errors


async def test_errors_are_retried_with_backoff_and_shown_in_the_status_until_they_are_gone() -> None:
    async with webapp_environment() as env, env.operating() as manager:
        with env.transport.script.active(
            lambda asked: asked.method == "PATCH" and "/deployments/" in asked.path,
            status_response(403, reason="Forbidden", message="no room"),
        ):
            await env.client.create(webapp())
            await asyncio.sleep(0.5)
            app = await env.app()
            assert app.status.retry_count >= 1
            assert "no room" in app.status.last_error
            assert app.status.phase is Phase.CREATED

            await asyncio.sleep(40)
            app = await env.app()
            asked = [one.time for one in env.requests() if one.method == "PATCH" and "/deployments/" in one.path]
            attempts = sorted({round(time, 1) for time in asked})
            gaps = [after - before for before, after in pairwise(attempts)]
            assert gaps[:4] == pytest.approx([1, 2, 4, 8], rel=0.2)
            assert (app.status.phase, app.status.retry_count) == (Phase.DEGRADED, len(attempts))
            assert reason_of(app) == ("True", "ReconcileFailed")
            assert manager.stats()[0].queue.retries >= len(attempts)
        app = await env.reaches(Phase.READY)
        assert (app.status.last_error, app.status.retry_count) == ("", 0)


async def test_an_invalid_spec_is_a_terminal_error_with_a_message_until_it_changes() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(image="nginx", autoscaling={"maxReplicas": 1, "minReplicas": 2}))
        await asyncio.sleep(600)
        app = await env.app()
        assert (app.status.phase, app.status.retry_count) == (Phase.DEGRADED, 0)
        assert "the image needs a tag: use one such as nginx:1.25, at .spec.image" in app.status.last_error
        assert "minReplicas 2 is greater than maxReplicas 1" in app.status.last_error
        assert reason_of(app) == ("True", "InvalidSpec")
        assert await env.children() == []

        await env.change(image="nginx:1.25", autoscaling=None)
        await env.reaches(Phase.READY)


async def test_an_invalid_change_does_not_touch_the_running_pods() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)
        await env.change(image="nginx:latest")
        app = await env.reaches(Phase.DEGRADED)
        deployment = await env.deployment()
        assert deployment.spec.template.spec is not None
        assert deployment.spec.template.spec.containers[0].image == "nginx:1.25"
        assert app.status.available_replicas == 2
        assert reason_of(app, "Available")[0] == "True"


async def test_an_object_that_somebody_else_created_is_not_adopted() -> None:
    async with webapp_environment() as env, env.operating():
        service = Unstructured(apiVersion="v1", kind="Service", metadata={"name": "web", "namespace": "default"})
        service["spec"] = {"ports": [{"port": 1}], "selector": {"a": "b"}}
        await env.client.create(service)
        await env.client.create(webapp())
        await asyncio.sleep(10)
        app = await env.app()
        assert app.status.phase is Phase.DEGRADED
        assert "Service default/web already exists and this WebApp does not own it" in app.status.last_error
        assert (await env.client.get(Service, "web")).metadata.owner_references in (None, [])
        await env.client.delete(Service, "web")
        await env.reaches(Phase.READY, within=400)


async def test_environment_variables_appear_in_no_status_and_no_event() -> None:
    canary = "s3cr3t-c4n4ry"
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(env={"PASSWORD": canary, "a b": canary}))
        await asyncio.sleep(10)
        await env.change(env={"a b": None}, image="nginx:bad")
        await asyncio.sleep(900)
        app = await env.app()
        assert canary not in str(app.status)
        assert canary not in str(await env.events())


# Missing events


async def test_without_events_it_heals_at_the_next_resync() -> None:
    async with webapp_environment() as env:
        builder = controller_for(WebApp)
        for kind in KINDS:
            builder = builder.owns(kind, predicate=~anything)
        for missing in (HTTP_ROUTE, POD_MONITOR):
            builder = builder.owns(missing, options=CacheOptions(optional=True))
        async with env.operating(builder.build(WebAppReconciler(env.lifecycle))):
            await env.client.create(webapp())
            await asyncio.sleep(100)
            await env.client.delete(Deployment, "web")
            elapsed = await env.until(lambda: _has_deployment(env))
            assert 0 < elapsed <= 31


async def test_a_change_during_a_stalled_watch_is_healed() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)
        env.transport.pause_streams()
        await env.client.delete(Deployment, "web")
        assert await env.until(lambda: _has_deployment(env)) <= 60


async def _has_deployment(env: WebAppEnvironment) -> bool:
    return "Deployment web" in await env.children()


async def test_after_a_downtime_any_phase_may_follow_and_is_counted() -> None:
    async with webapp_environment(strict=False) as env:
        async with env.operating():
            await env.client.create(webapp())
            await asyncio.sleep(1)
        assert (await env.app()).status.phase in (Phase.RECONCILING, Phase.WAITING)
        await env.client.patch(WebApp, "web", {"status": {"phase": "Created"}}, subresource="status")
        await asyncio.sleep(60)
        async with env.operating():
            await env.reaches(Phase.READY)
        assert transitions(env.lifecycle)["Created -> Ready"] == 1


# Deletion


async def test_deletion_removes_the_children_in_order_and_creates_events() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp(ingress={"host": "a.example.com"}, autoscaling={"maxReplicas": 4}))
        await env.reaches(Phase.READY)
        env.clear_requests()
        await env.client.delete(WebApp, "web")
        await settle()

        with pytest.raises(NotFound):
            await env.app()
        assert await env.children() == []
        deleted = [one.rsplit("/", 2)[1] for one in env.writes if one.startswith("DELETE")]
        assert deleted == ["ingresses", "horizontalpodautoscalers", "services", "poddisruptionbudgets", "deployments"]
        await asyncio.sleep(5)
        assert [reason for reason, _ in await env.events()][-2:] == ["Deleting", "Deleted"]


async def test_a_child_with_a_foreign_finalizer_delays_the_deletion() -> None:
    async with webapp_environment() as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)
        held = ["test.example.com/held"]
        await env.client.patch(Service, "web", {"metadata": {"finalizers": held}})
        await env.client.delete(WebApp, "web")
        await asyncio.sleep(20)
        assert (await env.app()).status.phase is Phase.DELETING
        assert await env.children() == ["Service web"]
        await env.client.patch(Service, "web", {"metadata": {"finalizers": None}})
        await asyncio.sleep(10)
        with pytest.raises(NotFound):
            await env.app()


async def test_an_application_that_is_deleted_before_it_was_reconciled_leaves_no_children() -> None:
    async with webapp_environment() as env:
        await env.client.create(webapp())
        await env.client.delete(WebApp, "web")
        async with env.operating():
            await settle()
            assert await env.children() == []


async def test_a_second_application_of_the_same_name_gets_its_own_children() -> None:
    async with webapp_environment() as env:
        async with env.operating():
            first = await env.client.create(webapp())
            await env.reaches(Phase.READY)
        await env.client.patch(WebApp, "web", {"metadata": {"finalizers": None}})
        await env.client.delete(WebApp, "web")
        second = await env.client.create(webapp(replicas=1))
        for kind in (Deployment, Service, PodDisruptionBudget):
            await env.client.delete(kind, "web")  # as garbage collection does
        async with env.operating():
            await env.reaches(Phase.READY)
            owners = (await env.deployment()).metadata.owner_references or []
            assert [one.uid for one in owners] == [second.uid]
            assert first.uid != second.uid
