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
from konverge.objects import AnyObject, ObjectStatus, to_wire
from konverge.workflow import objects_status
from konverge_operators.autoscaling import autoscaler_spec, replicas_to_apply
from konverge_operators.ecommerce.api import EcommerceApp, Tier
from konverge_operators.ecommerce.database import connection_secret
from konverge_operators.ecommerce.monitoring import service_annotations
from konverge_operators.ecommerce.names import LAST_RESTART, Part
from konverge_operators.manifests import Json, disruption_budget, http_container, network_policy, secret_variable

__all__ = ["KINDS", "backend_objects", "backend_status", "frontend_objects", "images_of", "replicas_of"]

KINDS = (Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler, NetworkPolicy, Job)
_AUTOSCALER = "ecommerce-autoscaling"


def images_of(app: EcommerceApp) -> dict[str, str]:
    """Return the image of each tier; that of the frontend defaults to that of the application."""
    return {"backend": app.spec.backend.image, "frontend": app.spec.frontend.image or app.spec.image or ""}


def replicas_of(app: EcommerceApp) -> dict[str, int]:
    """Return the replicas of each tier; those of the frontend default to those of the application."""
    defaults = {"backend": (app.spec.backend, 1), "frontend": (app.spec.frontend, app.spec.replicas)}
    return {name: default if tier.replicas is None else tier.replicas for name, (tier, default) in defaults.items()}


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
    scaling, desired = tier.autoscaling, replicas_of(part.app)[part.part]
    replicas = await replicas_to_apply(ctx, part.name, desired, scaling, manager=_AUTOSCALER)
    restart = part.app.status.last_restart
    template = part.template(
        http_container(part.part, image, port=tier.port, env=env, resources=to_wire(tier.resources)),
        clients=part.part == "backend",
        annotations={LAST_RESTART: restart} if restart else None,
    )
    objects: list[AnyObject] = [
        part.deployment(template, replicas),
        part.service(tier.port, annotations=service_annotations(part.app, ctx, tier.port)),
        part.child(PodDisruptionBudget, spec=disruption_budget(part.selector)),
    ]
    if scaling is not None:
        objects.append(part.child(HorizontalPodAutoscaler, spec=autoscaler_spec(part.name, scaling)))
    return objects


def _migrations(app: EcommerceApp, env: list[Json]) -> list[Job]:
    """Return the Job of the migrations of the backend's image, if any; its name is a hash of image and command."""
    image, command = app.spec.backend.image, app.spec.backend.migrations
    if command is None:
        return []
    digest = sha256("\0".join([image, *command.command]).encode()).hexdigest()[:8]
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    container = {"name": "migrations", "image": image, "command": command.command, "env": env, "resources": resources}
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
