"""A scenario with one WebApp, from its creation to its deletion, optionally with an operator that is killed."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from konverge import NotFound
from konverge.client import InProcessTransport
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import to_wire
from konverge.wire.messages import Request, Response
from konverge_operators.webapp.api import Phase
from konverge_operators.webapp.children import KINDS
from webapps import WebAppEnvironment, webapp, webapp_environment

__all__ = ["CrashingTransport", "run_scenario", "run_user_steps"]

PLURALS = ("deployments", "services", "ingresses", "horizontalpodautoscalers")
VOLATILE = {
    "lastUpdateTime",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "generation",
}


@dataclass
class CrashingTransport:
    """The transport of a process that is killed at write number `at`, before or after the server handles the write."""

    env: WebAppEnvironment
    at: int
    after: bool
    writes: int = 0
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._inner = InProcessTransport(self.env.server.handle)

    async def send(self, request: Request) -> Response:
        if self.killed.is_set():
            await asyncio.get_running_loop().create_future()
        if request.method == "GET" or "/events" in request.path or "accessreviews" in request.path:
            return await self._inner.send(request)
        self.writes += 1
        crashes = self.writes == self.at
        if crashes and not self.after:
            await self._crash()
        response = await self._inner.send(request)
        self._count(request, response)
        if crashes:
            await self._crash()
        return response

    async def close(self) -> None:
        await self._inner.close()

    async def _crash(self) -> None:
        self.killed.set()
        await asyncio.get_running_loop().create_future()

    def _count(self, request: Request, response: Response) -> None:
        plural = next((one for one in PLURALS if f"/{one}/" in request.path), "")
        if plural and response.status == 201:
            self.counts[f"create {plural}"] += 1
        elif plural and request.method == "DELETE" and response.status < 300:
            self.counts[f"delete {plural}"] += 1


async def run_user_steps(env: WebAppEnvironment) -> dict[str, Any]:
    """Run the steps of a user, wait after each until it is done, and return snapshots of the objects."""
    snapshots: dict[str, Any] = {}
    await env.client.create(webapp(ingress={"host": "a.example.com"}, rollback=True, progressDeadlineSeconds=60))
    await env.reaches(Phase.READY, within=400)
    await env.change(replicas=4, autoscaling={"minReplicas": 2, "maxReplicas": 6})
    await env.reaches(Phase.READY, within=400)
    await settled(env)
    snapshots["scaled"] = await snapshot(env)
    await env.change(image="nginx:bad", autoscaling=None, ingress=None)
    await env.until(lambda: _is_rolled_back(env), within=400)
    await settled(env)
    snapshots["rolled back"] = await snapshot(env)
    await env.client.delete(Deployment, "web")
    await env.change(image="nginx:1.27")
    await env.reaches(Phase.READY, within=400)
    await settled(env)
    snapshots["healed"] = await snapshot(env)
    await env.client.delete("webapps.example.com", "web")
    await env.until(lambda: _is_gone(env), within=400)
    snapshots["gone"] = await snapshot(env)
    return snapshots


async def settled(env: WebAppEnvironment) -> None:
    """Wait until at least one more reconcile has changed nothing."""
    await asyncio.sleep(40)


async def _is_rolled_back(env: WebAppEnvironment) -> bool:
    app, deployment = await env.app(), await env.deployment()
    pod = deployment.spec.template.spec
    done = deployment.status.available_replicas == deployment.status.replicas == app.spec.replicas
    return (
        app.status.failed_image == "nginx:bad" and pod is not None and pod.containers[0].image == "nginx:1.25" and done
    )


async def _is_gone(env: WebAppEnvironment) -> bool:
    try:
        await env.app()
    except NotFound:
        return await env.children() == []
    return False


async def snapshot(env: WebAppEnvironment) -> list[Any]:
    """Return the objects without fields that differ from run to run."""
    found: list[Any] = []
    for kind in (*KINDS, None):
        for one in await env.client.list(kind or type(webapp()), namespace="default"):
            if one.name != "kubernetes":
                found.append(_plain(to_wire(one)))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


async def run_scenario(at: int, *, after: bool) -> tuple[CrashingTransport, Counter[str], dict[str, Any]]:
    async with webapp_environment(strict=at == 0) as env:
        crashing = CrashingTransport(env, at, after)
        second = CrashingTransport(env, 0, after=False)

        async def run_operator() -> None:
            async with env.operating(transport=crashing):
                await crashing.killed.wait()
            async with env.operating(transport=second):
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as tasks:
            operator = tasks.create_task(run_operator())
            snapshots = await run_user_steps(env)
            operator.cancel()
        return crashing, crashing.counts + second.counts, snapshots
