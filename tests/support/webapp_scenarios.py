"""A scenario with one WebApp, from its creation to its deletion."""

from __future__ import annotations

import asyncio

from konverge import NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge_operators.webapp.api import Phase
from webapps import WebAppEnvironment, webapp

__all__ = ["run_user_steps"]


async def run_user_steps(env: WebAppEnvironment) -> None:
    """Run the steps of a user, and wait after each until it is done."""
    await env.client.create(webapp(ingress={"host": "a.example.com"}, rollback=True, progressDeadlineSeconds=60))
    await env.reaches(Phase.READY, within=400)
    await env.change(replicas=4, autoscaling={"minReplicas": 2, "maxReplicas": 6})
    await env.reaches(Phase.READY, within=400)
    await settled()
    await env.change(image="nginx:bad", autoscaling=None, ingress=None)
    await env.until(lambda: _is_rolled_back(env), within=400)
    await settled()
    await env.client.delete(Deployment, "web")
    await env.change(image="nginx:1.27")
    await env.reaches(Phase.READY, within=400)
    await settled()
    await env.client.delete("webapps.example.com", "web")
    await env.until(lambda: _is_gone(env), within=400)


async def settled() -> None:
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
