"""The backend and frontend components: Deployment, Service, budget, autoscaler, policy, and migrations."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Service
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import AnyObject, ObjectStatus
from konverge.workflow import objects_status
from konverge_operators.ecommerce.api import Autoscaling, EcommerceApp, Tier
from konverge_operators.ecommerce.database import connection_secret
from konverge_operators.ecommerce.monitoring import scrape_annotations
from konverge_operators.ecommerce.names import LAST_RESTART, Part, secret_variable
from konverge_operators.manifests import Json, disruption_budget, network_policy

__all__ = ["KINDS", "backend_objects", "backend_status", "frontend_objects", "images_of", "replicas_of"]

KINDS = (Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler, NetworkPolicy, Job)
_AUTOSCALER = "ecommerce-autoscaling"


def images_of(app: EcommerceApp) -> dict[str, str]:
    """Return the image of each tier; that of the frontend defaults to that of the application."""
    return {"backend": app.spec.backend.image, "frontend": app.spec.frontend.image or app.spec.image or ""}


def replicas_of(app: EcommerceApp) -> dict[str, int]:
    """Return the replicas of each tier; those of the frontend default to those of the application."""
    frontend, backend = app.spec.frontend.replicas, app.spec.backend.replicas
    return {
        "backend": 1 if backend is None else backend,
        "frontend": app.spec.replicas if frontend is None else frontend,
    }


async def backend_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the backend. A new image is rolled out when its migrations are done."""
    part, image = Part(app, "backend"), app.spec.backend.image
    env = [secret_variable("DATABASE_URL", await connection_secret(app, ctx), "uri")]
    jobs = _migrations(app, env)
    if not all([_is_complete(await ctx.get(Job, job.name)) for job in jobs]):
        old = await ctx.get(Deployment, part.name)
        image = (old.spec.template.spec.containers[0].image or "") if old is not None and old.spec.template.spec else ""
    if not image:
        return [*jobs]  # the first roll-out waits for its migrations
    allowed = Part(app, "frontend").selector
    policy = network_policy(part.selector, allowed=allowed, port=app.spec.backend.port)
    objects = await _tier_objects(part, ctx, app.spec.backend, image=image, env=env)
    return [*objects, part.child(NetworkPolicy, spec=policy), *jobs]


async def frontend_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the frontend."""
    backend = f"http://{Part(app, 'backend').name}:{app.spec.backend.port}"
    env: list[Json] = [{"name": "BACKEND_URL", "value": backend}]
    return await _tier_objects(Part(app, "frontend"), ctx, app.spec.frontend, image=images_of(app)["frontend"], env=env)


async def _tier_objects(part: Part, ctx: Context, tier: Tier, *, image: str, env: list[Json]) -> list[AnyObject]:
    deployment = part.child(Deployment, spec=_deployment_spec(part, tier, image, env))
    deployment.spec.replicas = await _replicas(part, ctx, tier.autoscaling)
    objects: list[AnyObject] = [
        deployment,
        part.service(tier.port, annotations=scrape_annotations(part.app, ctx, tier.port)),
        part.child(PodDisruptionBudget, spec=disruption_budget(part.selector)),
    ]
    if tier.autoscaling is not None:
        objects.append(part.child(HorizontalPodAutoscaler, spec=_autoscaler_spec(part.name, tier.autoscaling)))
    return objects


async def _replicas(part: Part, ctx: Context, scaling: Autoscaling | None) -> int | None:
    """Return the replicas to apply; None when they belong to the autoscaler."""
    desired = replicas_of(part.app)[part.part]
    if scaling is None:
        return desired
    existing = await ctx.get(Deployment, part.name)
    if existing is None:
        return max(scaling.min_replicas, min(desired, scaling.max_replicas))
    await ctx.hand_over(existing, ".spec.replicas", to=_AUTOSCALER)
    return None


def _deployment_spec(part: Part, tier: Tier, image: str, env: list[Json]) -> Json:
    probe, restart = {"tcpSocket": {"port": "http"}}, part.app.status.last_restart
    container = {
        "name": part.part,
        "image": image,
        "ports": [{"name": "http", "containerPort": tier.port}],
        "env": [*env, {"name": "PORT", "value": str(tier.port)}],
        "resources": {"requests": dict(tier.resources.requests), "limits": dict(tier.resources.limits)},
        "startupProbe": {**probe, "periodSeconds": 1, "failureThreshold": 300},
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},  # until no Service sends requests any more
    }
    annotations = {LAST_RESTART: restart} if restart else None
    return {
        "paused": False,
        "progressDeadlineSeconds": part.app.spec.progress_deadline_seconds,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": {"matchLabels": part.selector},
        "template": part.template(container, clients=part.part == "backend", annotations=annotations),
    }


def _autoscaler_spec(name: str, scaling: Autoscaling) -> Json:
    target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }


def _migrations(app: EcommerceApp, env: list[Json]) -> list[Job]:
    """Return the Job of the migrations of the backend's image, if any; its name is a hash of image and command."""
    image, command = app.spec.backend.image, app.spec.backend.migrations
    if command is None:
        return []
    digest = sha256("\0".join([image, *command.command]).encode()).hexdigest()[:8]
    container = {
        "name": "migrations",
        "image": image,
        "command": list(command.command),
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    pods = Part(app, "migrations").template(container, clients=True, restartPolicy="Never")
    job = Part(app, f"migrations-{digest}", component="backend")
    return [job.child(Job, spec={"backoffLimit": 2, "template": pods})]


def backend_status(app: EcommerceApp, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status of the backend; unlike other Jobs, migrations that still run are in progress."""
    found = objects_status(app, objects)
    running = [one.name for one in objects if isinstance(one, Job) and not _is_complete(one)]
    return ObjectStatus("InProgress", f"Job {running[0]} runs") if running and found.status == "Current" else found


def _is_complete(job: Job | None) -> bool:
    conditions = job.status.conditions or [] if job is not None else []
    return any(one.type == "Complete" and one.status == "True" for one in conditions)
