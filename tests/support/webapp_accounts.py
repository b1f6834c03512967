"""The WebApp operator as its service account, with the permissions that are generated and no others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import yaml

from konverge import Client, Manager, Unstructured
from konverge.cli.manifests import Release, files_of
from konverge.client import ClientOptions, InProcessTransport
from konverge.webhooks import Address, Webhooks, configurations_for
from konverge.wire.messages import Request, Response
from konverge_cluster import EmbeddedCluster
from konverge_cluster.api.authorization import UserInfo
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers

__all__ = ["ACCOUNT", "GROUPS", "HOME", "generated", "operating_in", "refusals"]

HOME = "webapp-operator-system"
ACCOUNT = f"system:serviceaccount:{HOME}:{operator.name}"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated")

_RELEASE = Release(operator=operator, target="konverge_operators.webapp", namespace=HOME, image="webapp-operator:1")


def generated(*names: str) -> list[Unstructured]:
    """Return the generated objects of these files."""
    files = files_of(_RELEASE)
    return [Unstructured(one) for name in names for one in yaml.safe_load_all(files[f"base/{name}.yaml"])]


@asynccontextmanager
async def operating_in(cluster: EmbeddedCluster) -> AsyncGenerator[Manager]:
    """Run the operator in an embedded cluster; the server calls its webhooks in this process."""
    service = f"{operator.name}-webhooks"
    address = Address(service=service, namespace=HOME)
    cluster.server.webhook_client.serve(HOME, service, Webhooks(*operator.webhooks).handle_review)
    webhooks = configurations_for(operator.webhooks, address, name=operator.name, exclude=(HOME,))
    for one in (*generated("namespace", "rbac"), *operator.crds(address), *webhooks):
        await cluster.client().create(one)

    async def handle(request: Request) -> Response:
        return await cluster.server.handle(request, UserInfo(ACCOUNT, GROUPS))

    client = Client(InProcessTransport(handle), options=ClientOptions(namespace=HOME))
    manager = Manager(client, name=operator.name)
    manager.add(*controllers())
    async with manager.running():
        yield manager


def refusals(manager: Manager) -> list[str]:
    """Return what the operator was forbidden to do."""
    assert manager._running is not None
    found = [sample for family in manager._running.monitoring.registry.collect() for sample in family.samples]
    return [
        f"{one.labels['verb']} {one.labels['kind']}"
        for one in found
        if one.name == "konverge_client_requests_total" and one.labels["code"] == "403"
    ]
