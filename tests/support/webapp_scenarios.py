"""One play of a user with a WebApp, from its creation to its end, also with an operator that is killed on the way."""

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

PARTS = ("deployments", "services", "ingresses", "horizontalpodautoscalers")
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
    """The way of a process that is killed at its write number `at`, before the server has it or after."""

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
        dies = self.writes == self.at
        if dies and not self.after:
            await self._die()
        response = await self._inner.send(request)
        self._count(request, response)
        if dies:
            await self._die()
        return response

    async def close(self) -> None:
        await self._inner.close()

    async def _die(self) -> None:
        self.killed.set()
        await asyncio.get_running_loop().create_future()

    def _count(self, request: Request, response: Response) -> None:
        plural = next((one for one in PARTS if f"/{one}/" in request.path), "")
        if plural and response.status == 201:
            self.counts[f"create {plural}"] += 1
        elif plural and request.method == "DELETE" and response.status < 300:
            self.counts[f"delete {plural}"] += 1


async def run_user_steps(env: WebAppEnvironment) -> dict[str, Any]:
    """Play what a user does, step by step, each to its end; give what is there in between and in the end."""
    seen: dict[str, Any] = {}
    await env.client.create(webapp(ingress={"host": "a.example.com"}, rollback=True, progressDeadlineSeconds=60))
    await env.reaches(Phase.READY, within=400)
    await env.change(replicas=4, autoscaling={"minReplicas": 2, "maxReplicas": 6})
    await env.reaches(Phase.READY, within=400)
    await settled(env)
    seen["scaled"] = await snapshot(env)
    await env.change(image="nginx:bad", autoscaling=None, ingress=None)
    await env.until(lambda: _is_rolled_back(env), within=400)
    await settled(env)
    seen["rolled back"] = await snapshot(env)
    await env.client.delete(Deployment, "web")
    await env.change(image="nginx:1.27")
    await env.reaches(Phase.READY, within=400)
    await settled(env)
    seen["healed"] = await snapshot(env)
    await env.client.delete("webapps.example.com", "web")
    await env.until(lambda: _is_gone(env), within=400)
    seen["gone"] = await snapshot(env)
    return seen


async def settled(env: WebAppEnvironment) -> None:
    """Wait until at least one more reconcile has found nothing to do."""
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
    """What is there, without what differs from run to run."""
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

        async def live() -> None:
            async with env.operating(transport=crashing):
                await crashing.killed.wait()
            async with env.operating(transport=second):
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as tasks:
            life = tasks.create_task(live())
            seen = await run_user_steps(env)
            life.cancel()
        return crashing, crashing.counts + second.counts, seen
