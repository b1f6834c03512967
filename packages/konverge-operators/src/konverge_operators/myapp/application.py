"""The component of the application itself: Deployment, Service and budget, bound to the connection Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import AnyObject
from konverge.workflow import CONFIGURATION_HASH, Waiting
from konverge_operators import manifests
from konverge_operators.myapp.api import MyApp
from konverge_operators.myapp.dependents import OPERATOR, connection_secret

__all__ = ["COMPONENT", "KINDS", "application_objects"]

COMPONENT = "application"
KINDS = (Deployment, Service, PodDisruptionBudget)


async def application_objects(app: MyApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the application.

    The variables refer to the Secrets, and a hash of the values that they have is on the pods: new credentials roll
    the pods once.

    Raises: Waiting when a Secret or one of its keys is missing; nothing is changed then.
    """
    variables: list[manifests.Json] = []
    digest = sha256()
    app.status.connections = {name: await connection_secret(app, ctx, name) for name in _bound(app)}
    for component, secret in app.status.connections.items():
        for name, key, value in await _values(ctx, secret, _bound(app)[component]):
            variables.append(manifests.secret_variable(name, secret, key))
            digest.update(b"%d %s=%d %s" % (len(name), name.encode(), len(value), value))
    annotations = {CONFIGURATION_HASH: digest.hexdigest()[:16]} if app.status.connections else {}
    selected, marked = manifests.selector(app.name, COMPONENT), manifests.labels(app.name, COMPONENT, operator=OPERATOR)
    return [
        manifests.child(Deployment, app.name, marked, spec=_deployment_spec(app, variables, annotations)),
        manifests.child(Service, app.name, marked, spec=manifests.service_spec(selected, app.spec.port)),
        manifests.child(PodDisruptionBudget, app.name, marked, spec=manifests.disruption_budget(selected)),
    ]


def _bound(app: MyApp) -> dict[str, Mapping[str, str]]:
    """Return the bindings of the database and the cache, as far as the application has them."""
    spec, bindings = app.spec, app.spec.bindings
    every = (("database", spec.database, bindings.database), ("cache", spec.cache, bindings.cache))
    return {name: variables for name, chosen, variables in every if chosen is not None}


async def _values(ctx: Context, name: str, variables: Mapping[str, str]) -> list[tuple[str, str, bytes]]:
    """Return variable, key and value for each binding to a Secret."""
    secret = await ctx.get(Secret, name)
    if secret is None:
        raise Waiting("SecretMissing", f"Secret {name} does not exist: restore it; the pods keep what they have")
    missing = sorted(set(variables.values()) - set(secret.data))
    if missing:
        message = f"Secret {name} has no key {', '.join(missing)}: it has {', '.join(sorted(secret.data))}"
        raise Waiting("KeyMissing", message)
    return [(variable, key, secret.data[key]) for variable, key in sorted(variables.items())]


def _deployment_spec(app: MyApp, variables: list[manifests.Json], annotations: dict[str, str]) -> manifests.Json:
    spec, selected = app.spec, manifests.selector(app.name, COMPONENT)
    requests = {"cpu": "50m", "memory": "64Mi", **spec.resources.requests}
    resources = {"requests": requests, "limits": dict(spec.resources.limits)}
    container = manifests.http_container(COMPONENT, spec.image, port=spec.port, env=variables, resources=resources)
    metadata = {"labels": manifests.labels(app.name, COMPONENT, operator=OPERATOR), "annotations": annotations}
    template = {"metadata": metadata, "spec": manifests.pod_spec(container, selected)}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    common = manifests.deployment_spec(selected, template, progress_deadline=600, strategy=strategy)
    return {"replicas": spec.replicas, **common}
