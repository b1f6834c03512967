"""Metrics behind TokenReview and SubjectAccessReview of a real API server."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from konverge.client import Client, ClientConfig, StaticCredentials, load_config
from konverge.k8s.core.v1 import ServiceAccount
from konverge.manager.health import Health
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.metrics_access import AccessReviews
from konverge.manager.probes import ProbeServer
from konverge.objects import Key, ObjectMeta, Unstructured
from konverge.testing import ControlPlane
from konverge.testing.servers import free_port
from probe_requests import get

RBAC = "rbac.authorization.k8s.io"

pytestmark = pytest.mark.real_time(limit=120)


async def bind(client: Client, name: str, namespace: str, role: str) -> None:
    """Give a service account a cluster role."""
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}-{name}"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await client.create(Unstructured(binding))


async def token_of(client: Client, name: str, namespace: str) -> str:
    await client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace)))
    return (await client.create_token(name, namespace=namespace)).token


@asynccontextmanager
async def serving(config: ClientConfig) -> AsyncIterator[ProbeServer]:
    """An operator's metrics, served from the side thread as in a manager."""
    registry = CollectorRegistry()
    Counter("reconcile", "Reconciles", registry=registry).inc()
    access = AccessReviews(lambda: Client.connect(config))
    server = ProbeServer("127.0.0.1:0", Health(), registry=registry, why=_nothing_but_why, access=access)
    async with LeaseThread() as side:
        await side.call(server.start)
        yield server
        await side.call(server.stop)


def _nothing_but_why(controller: str, key: Key | None) -> Any:
    return [{"controller": controller, "key": str(key)}]


async def status(server: ProbeServer, path: str, token: str = "") -> int:
    response = await (get(server.port, path, Authorization=f"Bearer {token}") if token else get(server.port, path))
    return response.status


async def test_only_who_may_get_the_path_reads_metrics(control_plane: ControlPlane, namespace: str) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    async with Client.connect(config) as admin:
        operator = await token_of(admin, "operator", namespace)
        prometheus = await token_of(admin, "prometheus", namespace)
        passer_by = await token_of(admin, "passer-by", namespace)
        await bind(admin, "operator", namespace, "system:auth-delegator")
        reader = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{namespace}-metrics-reader"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }
        await admin.create(Unstructured(reader))
        await bind(admin, "prometheus", namespace, f"{namespace}-metrics-reader")

    as_operator = dataclasses.replace(config, credentials=StaticCredentials.of_token(operator))
    async with serving(as_operator) as server:
        async with asyncio.timeout(60):  # RBAC takes a moment to be known
            while await status(server, "/metrics", prometheus) != 200:  # noqa: ASYNC110 - it is in the server
                await asyncio.sleep(1)
        assert await status(server, "/metrics") == 401
        assert await status(server, "/metrics", "forged") == 401
        assert await status(server, "/metrics", passer_by) == 403
        assert await status(server, "/debug/why/webapp/shop/web", prometheus) == 403
        assert await status(server, "/debug/why/webapp/shop/web", control_plane.admin_token) == 200
        assert await status(server, "/healthz") == 200
        response = await get(server.port, "/metrics")
        assert response.headers["www-authenticate"] == "Bearer"


async def test_an_operator_without_the_right_to_ask_lets_nobody_in(control_plane: ControlPlane, namespace: str) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    async with Client.connect(config) as admin:
        operator = await token_of(admin, "operator", namespace)
    as_operator = dataclasses.replace(config, credentials=StaticCredentials.of_token(operator))
    async with serving(as_operator) as server:
        assert await status(server, "/metrics", control_plane.admin_token) == 503
        assert await status(server, "/healthz") == 200


async def test_without_a_server_nobody_gets_in_and_probes_answer(control_plane: ControlPlane) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    nowhere = dataclasses.replace(config, server=f"https://127.0.0.1:{free_port()}")
    async with serving(nowhere) as server:
        assert await status(server, "/metrics", control_plane.admin_token) == 503
        assert await status(server, "/readyz") == 200
