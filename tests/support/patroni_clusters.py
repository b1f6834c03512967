"""Three Patroni members on process nodes, from plain manifests: no operator is involved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from konverge.objects import Key, Unstructured
from konverge_operators.database.postgresql.configuration import (
    CONFIGURATION_FILE,
    ROLE_LABEL,
    ROLES_FILE,
    SCOPE_LABEL,
    Configuration,
)
from konverge_operators.database.postgresql.members import POSTGRES_PORT, container, volumes
from konverge_operators.database.postgresql.permissions import rules
from konverge_operators.database.postgresql.versions import image
from process_clusters import ProcessCluster, is_ready

PASSWORDS = {"superuser": "super", "replication": "repl", "app": "secret"}


class PatroniCluster:
    """A running cluster and what a test asks of it."""

    def __init__(self, cluster: ProcessCluster, name: str = "db") -> None:
        self.cluster = cluster
        self.name = name
        self.addresses: dict[str, str] = {}

    async def create(self, *objects: Mapping[str, Any]) -> None:
        for one in objects:
            await self.cluster.client.create(Unstructured(dict(one)))

    async def wait_for_members(self, count: int) -> list[Unstructured]:
        """Wait until members are ready, one of them leads and the others stream from it; note their addresses."""
        async with asyncio.timeout(180):
            while True:
                members = await self.members()
                roles = sorted(_role(one) for one in members if is_ready(one))
                if len(members) == count and roles == ["primary", *["streaming"] * (count - 1)]:
                    self.addresses = {one.name: one["status"]["podIP"] for one in members}
                    return members
                await asyncio.sleep(0.1)

    async def wait_for_synchronous(self) -> None:
        """Wait until the leader has a synchronous standby: from then on it can hand over without loss."""

        def has_standby(config_map: Any) -> bool:
            return config_map is not None and bool(config_map["metadata"]["annotations"].get("sync_standby"))

        await self.cluster.client.wait_for("configmaps", f"{self.name}-sync", has_standby, timeout=120)

    async def members(self) -> list[Unstructured]:
        selector = f"{SCOPE_LABEL}={self.name}"
        return list(await self.cluster.client.list("pods", namespace=self.cluster.namespace, labels=selector))

    async def leader(self) -> str:
        """Return the member that has the lock."""
        found = await self.cluster.client.get("configmaps", f"{self.name}-leader")
        return str(found["metadata"]["annotations"].get("leader", ""))

    async def service(self, suffix: str = "-rw") -> str:
        """Return the address of a Service of the cluster."""
        found = await self.cluster.client.get("services", f"{self.name}{suffix}")
        return str(found["spec"]["clusterIP"])

    def key(self, member: str) -> Key:
        return Key(self.cluster.namespace, member)


def _role(pod: Unstructured) -> str:
    """Return primary for a leader, streaming for a replica that follows it, else nothing."""
    metadata = pod["metadata"]
    state = json.loads((metadata.get("annotations") or {}).get("status", "{}"))
    if state.get("state") != "running":
        return ""
    if (metadata.get("labels") or {}).get(ROLE_LABEL) == "primary":
        return "primary" if state.get("role") == "primary" else ""
    return str(state.get("replication_state", ""))


def manifests(configuration: Configuration, *, replicas: int = 3, version: str = "18.6") -> list[dict[str, Any]]:
    """Return all objects of a cluster."""
    name = configuration.name
    labels = {SCOPE_LABEL: name}
    secrets = [_object("v1", "Secret", f"{name}-{one}", stringData={"password": PASSWORDS[one]}) for one in PASSWORDS]
    files = {CONFIGURATION_FILE: configuration.file(), ROLES_FILE: configuration.roles()}
    subject = {"kind": "ServiceAccount", "name": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    ports = [{"port": POSTGRES_PORT}]
    return [
        *secrets,
        _object("v1", "ConfigMap", name, data=files),
        _object("v1", "ServiceAccount", name),
        _object("rbac.authorization.k8s.io/v1", "Role", name, rules=rules(name)),
        _object("rbac.authorization.k8s.io/v1", "RoleBinding", name, subjects=[subject], roleRef=role),
        _object("v1", "Service", name, spec={"clusterIP": "None", "selector": labels, "ports": ports}),
        _object("v1", "Service", f"{name}-rw", spec={"selector": {**labels, ROLE_LABEL: "primary"}, "ports": ports}),
        _object("apps/v1", "StatefulSet", name, spec=_stateful_set(name, labels, replicas, version)),
    ]


def _stateful_set(name: str, labels: dict[str, str], replicas: int, version: str) -> dict[str, Any]:
    secrets = {"superuser": f"{name}-superuser", "replication": f"{name}-replication", "application": f"{name}-app"}
    pod = {
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": 30,
        "containers": [container(image(version), name, **secrets)],
        "volumes": volumes(name),
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "serviceName": name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }


def _object(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}
