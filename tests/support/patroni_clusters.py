"""Three Patroni members on process nodes, from plain manifests: no operator is involved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from konverge import ObjectMeta
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, Unstructured
from konverge_operators.database.api import Database, DatabaseSpec
from konverge_operators.database.engine import MemberTemplate, ObservedMembers, Target
from konverge_operators.database.names import engine_config, secrets_of, selector_of
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.manifests import pod_spec
from process_clusters import ProcessCluster

PASSWORD = "secret"


class PatroniCluster:
    """A running cluster and what a test asks of it."""

    def __init__(self, cluster: ProcessCluster, database: Database) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.database = database
        self.engine = PostgreSQL()
        self.addresses: dict[str, str] = {}

    async def create(self, *objects: dict[str, Any]) -> None:
        for one in objects:
            await self.client.create(Unstructured(one))

    async def target(self) -> Target:
        """Return the database with its pods as they are now."""
        database = self.database
        pods = await self.client.list(Pod, namespace=database.namespace, labels=selector_of(database))
        return Target(
            database=database,
            version=database.spec.version,
            pods=sorted(pods, key=lambda pod: pod.name),
            secrets=secrets_of(database),
            client=self.client,
        )

    async def wait(self, fact: Callable[[ObservedMembers], bool], limit: float = 180) -> ObservedMembers:
        """Wait until a fact is observed; note the addresses of the members."""
        async with asyncio.timeout(limit):
            while True:
                target = await self.target()
                observed = await self.engine.observe(target)
                if fact(observed):
                    self.addresses = {pod.name: str(pod.status.pod_ip) for pod in target.pods if pod.status is not None}
                    return observed
                await asyncio.sleep(0.1)

    async def wait_for_members(self, count: int) -> ObservedMembers:
        """Wait until members are healthy, with a primary, and a synchronous one if the spec asks for it."""

        def complete(observed: ObservedMembers) -> bool:
            healthy = [one for one in observed.members if one.healthy]
            needed = int(self.database.spec.synchronous != "off" and count > 1)
            synchronous = [one for one in healthy if one.synchronous]
            return (
                len(observed.members) == len(healthy) == count and bool(observed.primary) and len(synchronous) >= needed
            )

        return await self.wait(complete)

    async def primary(self) -> str:
        """Wait for a primary, and return its name."""
        return (await self.wait(lambda observed: bool(observed.primary))).primary

    async def service(self, suffix: str = "-rw") -> str:
        """Return the address of a Service of the cluster."""
        found = await self.client.get("services", f"{self.database.name}{suffix}")
        return str(found["spec"]["clusterIP"])

    def key(self, member: str) -> Key:
        return Key(self.cluster.namespace, member)


def new_database(name: str = "db", **spec: Any) -> Database:
    """Return a Database object, for what an engine renders of it."""
    return Database(metadata=ObjectMeta(name=name, namespace="test"), spec=DatabaseSpec(version="18.6", **spec))


def manifests(database: Database, *, replicas: int = 3) -> list[dict[str, Any]]:
    """Return all objects of a cluster, without an operator."""
    name, labels, secrets = database.name, selector_of(database), secrets_of(database)
    template = PostgreSQL().render(database, database.spec.version, secrets)
    subject = {"kind": "ServiceAccount", "name": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    ports = [{"port": template.port}]
    primary = {**labels, **template.primary_labels}
    return [
        *(_object("v1", "Secret", one, stringData={"password": PASSWORD}) for one in astuple(secrets)),
        _object("v1", "ConfigMap", engine_config(database), data=template.config),
        _object("v1", "ServiceAccount", name),
        _object("rbac.authorization.k8s.io/v1", "Role", name, rules=template.role_rules),
        _object("rbac.authorization.k8s.io/v1", "RoleBinding", name, subjects=[subject], roleRef=role),
        _object("v1", "Service", name, spec={"clusterIP": "None", "selector": labels, "ports": ports}),
        _object("v1", "Service", f"{name}-rw", spec={"selector": primary, "ports": ports}),
        _object("apps/v1", "StatefulSet", name, spec=_stateful_set(database, template, replicas)),
    ]


def _stateful_set(database: Database, template: MemberTemplate, replicas: int) -> dict[str, Any]:
    name, labels = database.name, selector_of(database)
    mounts = [
        {"name": "data", "mountPath": template.data_path},
        {"name": "config", "mountPath": template.config_path, "readOnly": True},
    ]
    container = {"name": "database", **template.container, "volumeMounts": mounts}
    config = {"name": "config", "configMap": {"name": engine_config(database)}}
    pod = pod_spec(container, labels, user=template.user, volumes=[config], serviceAccountName=name)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "serviceName": name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {**pod, "automountServiceAccountToken": True}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }


def _object(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}
