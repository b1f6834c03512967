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
from konverge_operators.ecommerce.names import DATABASE_CLIENT, LAST_RESTART, OPERATOR, component_name
from konverge_operators.manifests import Json, child, disruption_budget, labels, network_policy, pod_spec, selector

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
    secret = {"secretKeyRef": {"name": connection_secret(app), "key": "uri"}}
    env = [{"name": "DATABASE_URL", "valueFrom": secret}]
    image, migration = app.spec.backend.image, _migration(app, env)
    if migration is not None and not _is_complete(await ctx.get(Job, migration.name)):
        old = await ctx.get(Deployment, component_name(app, "backend"))
        image = (old.spec.template.spec.containers[0].image or "") if old is not None and old.spec.template.spec else ""
    jobs = [migration] if migration is not None else []
    if not image:
        return list(jobs)  # the first roll-out waits for its migrations
    allowed = selector(app.name, "frontend")
    policy = network_policy(selector(app.name, "backend"), allowed=allowed, port=app.spec.backend.port)
    objects = await _tier_objects(app, ctx, "backend", app.spec.backend, image=image, env=env)
    name, all_labels = component_name(app, "backend"), labels(app.name, "backend", operator=OPERATOR)
    return [*objects, child(NetworkPolicy, name, all_labels, spec=policy), *jobs]


async def frontend_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the frontend."""
    backend = f"http://{component_name(app, 'backend')}:{app.spec.backend.port}"
    env: list[Json] = [{"name": "BACKEND_URL", "value": backend}]
    return await _tier_objects(app, ctx, "frontend", app.spec.frontend, image=images_of(app)["frontend"], env=env)


async def _tier_objects(
    app: EcommerceApp, ctx: Context, component: str, tier: Tier, *, image: str, env: list[Json]
) -> list[AnyObject]:
    name, all_labels = component_name(app, component), labels(app.name, component, operator=OPERATOR)
    deployment = child(Deployment, name, all_labels, spec=_deployment_spec(app, component, tier, image, env))
    deployment.spec.replicas = await _replicas(app, ctx, component, tier.autoscaling)
    ports = [{"name": "http", "port": tier.port, "targetPort": "http"}]
    service = {"selector": selector(app.name, component), "ports": ports}
    annotations = scrape_annotations(app, ctx, tier.port)
    objects: list[AnyObject] = [
        deployment,
        child(Service, name, all_labels, annotations, spec=service),
        child(PodDisruptionBudget, name, all_labels, spec=disruption_budget(selector(app.name, component))),
    ]
    if tier.autoscaling is not None:
        objects.append(child(HorizontalPodAutoscaler, name, all_labels, spec=_autoscaler_spec(name, tier.autoscaling)))
    return objects


async def _replicas(app: EcommerceApp, ctx: Context, component: str, scaling: Autoscaling | None) -> int | None:
    """Return the replicas to apply; None when they belong to the autoscaler."""
    wanted = replicas_of(app)[component]
    if scaling is None:
        return wanted
    existing = await ctx.get(Deployment, component_name(app, component))
    if existing is None:
        return max(scaling.min_replicas, min(wanted, scaling.max_replicas))
    await ctx.hand_over(existing, ".spec.replicas", to=_AUTOSCALER)
    return None


def _deployment_spec(app: EcommerceApp, component: str, tier: Tier, image: str, env: list[Json]) -> Json:
    selected = selector(app.name, component)
    probe = {"tcpSocket": {"port": "http"}}
    container = {
        "name": component,
        "image": image,
        "ports": [{"name": "http", "containerPort": tier.port}],
        "env": [*env, {"name": "PORT", "value": str(tier.port)}],
        "resources": {"requests": dict(tier.resources.requests), "limits": dict(tier.resources.limits)},
        "startupProbe": {**probe, "failureThreshold": 30},
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},  # until no Service sends requests any more
    }
    pod_labels = {**labels(app.name, component, operator=OPERATOR)}
    if component == "backend":
        pod_labels[DATABASE_CLIENT] = "true"
    metadata: Json = {"labels": pod_labels}
    if app.status.last_restart:
        metadata["annotations"] = {LAST_RESTART: app.status.last_restart}
    return {
        "paused": False,
        "progressDeadlineSeconds": app.spec.progress_deadline_seconds,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": {"matchLabels": selected},
        "template": {"metadata": metadata, "spec": pod_spec(container, selected)},
    }


def _autoscaler_spec(name: str, scaling: Autoscaling) -> Json:
    target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }


def _migration(app: EcommerceApp, env: list[Json]) -> Job | None:
    """Return the Job of the migrations of the backend's image; its name has the image and the command."""
    migrations, image = app.spec.backend.migrations, app.spec.backend.image
    if migrations is None:
        return None
    digest = sha256("\0".join([image, *migrations.command]).encode()).hexdigest()[:8]
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    container = {
        "name": "migrations",
        "image": image,
        "command": list(migrations.command),
        "env": env,
        "resources": resources,
    }
    pod_labels = {**labels(app.name, "migrations", operator=OPERATOR), DATABASE_CLIENT: "true"}
    pods = {**pod_spec(container, selector(app.name, "migrations")), "restartPolicy": "Never"}
    spec = {"backoffLimit": 2, "template": {"metadata": {"labels": pod_labels}, "spec": pods}}
    name = f"{component_name(app, 'migrations')}-{digest}"
    return child(Job, name, labels(app.name, "backend", operator=OPERATOR), spec=spec)


def backend_status(app: EcommerceApp, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status of the backend; unlike other Jobs, migrations that still run are in progress."""
    found = objects_status(app, objects)
    running = [one.name for one in objects if isinstance(one, Job) and not _is_complete(one)]
    return ObjectStatus("InProgress", f"Job {running[0]} runs") if running and found.status == "Current" else found


def _is_complete(job: Job | None) -> bool:
    conditions = job.status.conditions or [] if job is not None else []
    return any(one.type == "Complete" and one.status == "True" for one in conditions)
