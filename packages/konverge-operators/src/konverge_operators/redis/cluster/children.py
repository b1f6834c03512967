"""The children of a RedisCluster: a StatefulSet for each shard, a Service, a budget, and the connection Secret."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Secret, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Quantity
from konverge_operators.manifests import Json, child, disruption_budget, labels, pod_spec, selector
from konverge_operators.redis import connections
from konverge_operators.redis.cluster.api import RedisCluster
from konverge_operators.redis.servers import OPERATOR, PORT, digest, probes, variables

__all__ = [
    "COMPONENT",
    "KINDS",
    "SHARD",
    "budget_for",
    "secret_for",
    "servers_secret",
    "servers_secret_for",
    "service_for",
    "shard_of",
    "stateful_set_for",
]

KINDS = (StatefulSet, Service, PodDisruptionBudget)
COMPONENT = "shards"
SHARD = "redis.example.com/shard"
"""The label of a shard's StatefulSet and pods with its number."""

_PASSWORDS = "/passwords"  # where the Secret of the servers is mounted

# A primary that comes back empty would wipe its replicas. Without persistence it comes back as a new node instead.
_FORGETFUL = 'rm -f /data/nodes.conf; exec redis-server "$@"'


def secret_for(cluster: RedisCluster, password: str) -> Secret:
    """Return the Secret with the connection."""
    return connections.secret_for(cluster.name, _labels(cluster), password)


def servers_secret(name: str) -> str:
    """Return the name of the Secret with the passwords that the servers of a cluster accept."""
    return f"{name}-servers"


def servers_secret_for(cluster: RedisCluster, values: dict[str, str], accepted: Iterable[str]) -> Secret:
    """Return the Secret of the servers: some values, and the ACL file with the hashes of the accepted passwords."""
    hashes = " ".join(f"#{digest(password)}" for password in accepted)
    content = {**values, "users.acl": f"user default on {hashes} ~* &* +@all\n"}
    return child(Secret, servers_secret(cluster.name), _labels(cluster), stringData=content)


def service_for(cluster: RedisCluster) -> Service:
    """Return the headless Service: clients find one server by it, and the others from that server."""
    ports = [{"name": "redis", "port": PORT, "targetPort": "redis"}]
    selected = selector(cluster.name, COMPONENT)
    return child(
        Service, cluster.name, _labels(cluster), spec={"clusterIP": "None", "selector": selected, "ports": ports}
    )


def budget_for(cluster: RedisCluster) -> PodDisruptionBudget:
    spec = disruption_budget(selector(cluster.name, COMPONENT))
    return child(PodDisruptionBudget, cluster.name, _labels(cluster), spec=spec)


def stateful_set_for(cluster: RedisCluster, shard: int, replicas: int) -> StatefulSet:
    """Return the StatefulSet of a shard. Its pods are replaced by the operator, which knows their roles."""
    selected = {**selector(cluster.name, COMPONENT), SHARD: str(shard)}
    all_labels = {**_labels(cluster), SHARD: str(shard)}
    persistence = cluster.spec.persistence
    passwords = {"name": "passwords", "secret": {"secretName": servers_secret(cluster.name), "defaultMode": 0o440}}
    pods = pod_spec(_container(cluster), selected, terminationGracePeriodSeconds=60, volumes=[passwords])
    storage: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(persistence.storage.size)}},
    }
    if persistence.storage.storage_class_name is not None:
        storage["storageClassName"] = persistence.storage.storage_class_name
    spec = {
        "replicas": replicas,
        "serviceName": cluster.name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": selected},
        "template": {"metadata": {"labels": all_labels}, "spec": pods},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
        "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": cluster.spec.deletion_policy,
            "whenScaled": "Retain",
        },
    }
    return child(StatefulSet, f"{cluster.name}-shard-{shard}", all_labels, spec=spec)


def shard_of(found: dict[str, str] | None) -> int:
    """Return the number of the shard in the labels of a StatefulSet or pod; -1 if there is none."""
    text = (found or {}).get(SHARD, "")
    return int(text) if text.isdigit() else -1


def _labels(cluster: RedisCluster) -> dict[str, str]:
    return labels(cluster.name, COMPONENT, operator=OPERATOR)


def _options(cluster: RedisCluster) -> dict[str, str]:
    spec, mode = cluster.spec, cluster.spec.persistence.mode
    options = {
        "bind": "$(POD_IP)",
        "aclfile": f"{_PASSWORDS}/users.acl",
        "masterauth": "$(REDISCLI_AUTH)",
        "dir": "/data",
        "cluster-enabled": "yes",
        "cluster-config-file": "nodes.conf",
        "cluster-announce-ip": "$(POD_IP)",
        "cluster-node-timeout": "5000",
        "cluster-migration-barrier": "100",
        "cluster-require-full-coverage": "no",
        "appendonly": "yes" if mode in ("AOF", "Both") else "no",
        "appendfsync": spec.persistence.fsync,
        "save": "900 1 300 10 60 10000" if mode in ("RDB", "Both") else "",
    }
    if spec.max_memory is not None:
        options["maxmemory"] = str(Quantity(str(spec.max_memory)).whole())
        options["maxmemory-policy"] = spec.max_memory_policy
    return {**options, **spec.config}


def _container(cluster: RedisCluster) -> Json:
    spec = cluster.spec
    forgetful = ["sh", "-c", _FORGETFUL, "redis-server"]
    requests = {"cpu": "100m", "memory": "128Mi", **spec.resources.requests}
    return {
        "name": "server",
        "image": spec.image or f"valkey/valkey:{spec.version}",
        "command": forgetful if spec.persistence.mode == "None" else ["redis-server"],
        "args": [word for name, value in _options(cluster).items() for word in (f"--{name}", value)],
        "env": variables(servers_secret(cluster.name)),
        "ports": [{"name": "redis", "containerPort": PORT}, {"name": "bus", "containerPort": PORT + 10000}],
        "resources": {"requests": requests, "limits": dict(spec.resources.limits)},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "passwords", "mountPath": _PASSWORDS, "readOnly": True},
        ],
        **probes(startup_seconds=3600, password_file=f"{_PASSWORDS}/password"),  # loading the data may take long
    }
