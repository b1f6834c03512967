"""S1, S6: secrets are not exposed, and nothing affects another namespace."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import pytest

from konverge import (
    Client,
    Context,
    Controller,
    Manager,
    NotFound,
    ObjectMeta,
    Result,
    Unstructured,
)
from konverge.errors import Invalid
from konverge.k8s.core.v1 import ConfigMap, Namespace, Service, ServicePort, ServiceSpec
from konverge.k8s.events.v1 import Event
from konverge.objects import OwnerReference, to_wire
from konverge.telemetry import configure_logging
from konverge.testing.faults import status_response
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.reconciler import WebAppReconciler, workflow
from webapps import WebAppEnvironment, webapp, webapp_environment

CANARY = "c4n4ry-s3cr3t"
SECRETS: dict[str, Any] = {"PASSWORD": CANARY, "DATABASE": f"postgres://web:{CANARY}@db/shop"}


# S1


async def exposed_text(env: WebAppEnvironment, manager: Manager) -> str:
    """Return everything that the operator exposes except logs."""
    assert manager._running is not None
    samples = [str(sample) for family in manager._running.monitoring.registry.collect() for sample in family.samples]
    apps = [to_wire(app.status) for app in await env.client.list(WebApp)]
    events = [to_wire(event) for event in await env.client.list(Event)]
    why = [manager.why("webapp", app.key) for app in await env.client.list(WebApp)]
    return json.dumps([samples, apps, events, why], default=str)


async def run_with_secrets(env: WebAppEnvironment) -> None:
    """Run an application with secrets through success and failure."""
    await env.client.create(webapp(env=SECRETS, rollback=True, progressDeadlineSeconds=20))
    await env.reaches(Phase.READY)
    await env.change(image="nginx:bad")
    await asyncio.sleep(60)
    await env.change(image="nginx:1.27", env={"a b": CANARY})  # TerminalError: no name of a variable
    await asyncio.sleep(10)
    body = json.dumps({"kind": "Status", "code": 500, "message": "etcd is down"}).encode()
    with env.transport.script.active(lambda one: one.method == "PATCH", status_response(500, body)):
        await env.change(env={"a b": None, "MORE": CANARY})
        await asyncio.sleep(60)
    with env.transport.script.active(
        lambda one: one.method == "PATCH", status_response(200, f'{{"x": "{CANARY}'.encode())
    ):
        await env.change(env={"EVEN_MORE": CANARY})
        await asyncio.sleep(60)
    await env.reaches(Phase.READY, within=900)


class Clumsy(WebAppReconciler):
    """Raises an error that contains the object."""

    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        await super().reconcile(app, ctx)
        held = app
        raise RuntimeError(f"a bug near {held.key}")


def controller_with(reconciler: WebAppReconciler) -> Controller[WebApp]:
    return workflow.builder().owns(ConfigMap).build(reconciler)


@pytest.mark.parametrize("format_", ["human", "json"])
async def test_secrets_are_in_no_log_status_event_metric_or_journal(format_: Any) -> None:
    heard = io.StringIO()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure_logging(format_, "DEBUG", stream=heard)
        async with webapp_environment(strict=False) as env:
            async with env.operating() as manager:
                await run_with_secrets(env)
                exposed = await exposed_text(env, manager)
            async with env.operating(controller_with(Clumsy())) as manager:
                await asyncio.sleep(60)
                exposed += await exposed_text(env, manager)
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert "a bug near default/web" in heard.getvalue(), "the log has a traceback"
    assert "etcd is down" in heard.getvalue()
    assert CANARY not in heard.getvalue()
    assert CANARY not in exposed


# S6


async def other_namespace(env: WebAppEnvironment) -> Client:
    """Create another namespace, and return a client for it."""
    await env.client.create(Namespace(metadata=ObjectMeta(name="elsewhere")))
    return env.client.using(namespace="elsewhere", field_manager="webapp-operator")


async def test_an_object_of_another_namespace_that_claims_an_application_as_owner_does_not_affect_its_end() -> None:
    async with webapp_environment() as env, env.operating():
        foreign = await other_namespace(env)
        await env.client.create(webapp())
        app = await env.reaches(Phase.READY)
        owner = OwnerReference(api_version="example.com/v1", kind="WebApp", name="web", uid=app.uid, controller=True)
        forged = ObjectMeta(name="web", namespace="elsewhere", owner_references=[owner], finalizers=["test.io/stay"])
        port = ServicePort(name="http", port=80)
        made = await foreign.apply(Service(metadata=forged, spec=ServiceSpec(ports=[port])))

        await env.change(replicas=3)
        await env.reaches(Phase.READY)
        await env.client.delete(WebApp, "web")
        await asyncio.sleep(60)

        with pytest.raises(NotFound):
            await env.app()
        left = await foreign.get(Service, "web")
        assert (left.uid, left.metadata.deletion_timestamp) == (made.uid, None)


class Reaching(WebAppReconciler):
    """Applies a child in another namespace."""

    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="web", namespace="elsewhere"), data={"a": "b"}))
        return Result.done()


async def test_a_child_in_another_namespace_is_refused_before_a_request_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with webapp_environment() as env, env.operating(controller_with(Reaching())):
        foreign = await other_namespace(env)
        await env.client.create(webapp())
        await asyncio.sleep(20)
        assert await foreign.list(ConfigMap, namespace="elsewhere") == []
        assert [one for one in env.writes if "configmaps" in one] == []
    assert "they are in different namespaces" in caplog.text


async def test_an_application_cannot_refer_to_a_secret_of_another_namespace() -> None:
    reference = {"secretKeyRef": {"name": "theirs", "namespace": "elsewhere", "key": "password"}}
    async with webapp_environment() as env, env.operating():
        await other_namespace(env)
        document = to_wire(webapp())
        document["spec"]["env"] = {"PASSWORD": {"valueFrom": reference}}
        with pytest.raises(Invalid, match=r"spec\.env\.PASSWORD"):
            await env.client.create(Unstructured(document))
        secret = {"name": "theirs", "namespace": "elsewhere", "optional": True}
        document["spec"] |= {"env": {}, "envFrom": [{"secretRef": secret}], "namespace": "elsewhere"}
        await env.client.create(Unstructured(document))
        await env.reaches(Phase.READY)
        assert "elsewhere" not in str(to_wire(await env.deployment()))
        assert await env.children() == ["Deployment web", "PodDisruptionBudget web", "Service web"]
