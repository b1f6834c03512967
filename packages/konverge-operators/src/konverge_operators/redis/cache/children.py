"""The children of a Cache: Deployment, Service, budget, and the Secret with the connection."""

from __future__ import annotations

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Quantity
from konverge_operators.manifests import Json, child, disruption_budget, labels, pod_spec, selector
from konverge_operators.redis import connections
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.servers import OPERATOR, PORT, probes, variables

__all__ = ["KINDS", "budget_for", "deployment_for", "secret_for", "service_for"]

KINDS = (Deployment, Service, PodDisruptionBudget)
COMPONENT = "server"


def secret_for(cache: Cache, password: str) -> Secret:
    """Return the Secret with the connection."""
    return connections.secret_for(cache.name, _labels(cache), password)


def deployment_for(cache: Cache, annotations: dict[str, str]) -> Deployment:
    """Return the Deployment of the server. Two servers never serve at a time: clients would see two contents."""
    selected = selector(cache.name, COMPONENT)
    template = {"labels": _labels(cache), "annotations": annotations}
    pods = pod_spec(_container(cache), selected, terminationGracePeriodSeconds=10)
    spec = {
        "replicas": 1,
        "paused": False,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selected},
        "template": {"metadata": template, "spec": pods},
    }
    return child(Deployment, cache.name, _labels(cache), spec=spec)


def service_for(cache: Cache) -> Service:
    ports = [{"name": "redis", "port": PORT, "targetPort": "redis"}]
    return child(
        Service, cache.name, _labels(cache), spec={"selector": selector(cache.name, COMPONENT), "ports": ports}
    )


def budget_for(cache: Cache) -> PodDisruptionBudget:
    spec = disruption_budget(selector(cache.name, COMPONENT))
    return child(PodDisruptionBudget, cache.name, _labels(cache), spec=spec)


def _labels(cache: Cache) -> dict[str, str]:
    return labels(cache.name, COMPONENT, operator=OPERATOR)


def _container(cache: Cache) -> Json:
    spec, memory = cache.spec, Quantity(str(cache.spec.max_memory)).whole()
    options = {
        "bind": "$(POD_IP)",
        "requirepass": "$(REDISCLI_AUTH)",
        "maxmemory": str(memory),
        "maxmemory-policy": spec.max_memory_policy,
        "save": "",
        "appendonly": "no",
        "dir": "/tmp",
    }
    requests = {"cpu": "50m", "memory": str(memory * 5 // 4), **spec.resources.requests}
    limits = {"memory": requests["memory"], **spec.resources.limits}
    return {
        "name": "server",
        "image": spec.image or f"valkey/valkey:{spec.version}",
        "command": ["redis-server"],
        "args": [word for name, value in options.items() for word in (f"--{name}", value)],
        "env": variables(cache.name),
        "ports": [{"name": "redis", "containerPort": PORT}],
        "resources": {"requests": requests, "limits": limits},
        **probes(),
    }
