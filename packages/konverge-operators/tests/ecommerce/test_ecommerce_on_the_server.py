"""The EcommerceApp operator on a real control plane: real controllers, simulated nodes, generated permissions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from konverge import Client, Manager, ObjectMeta, Unstructured, load_config
from konverge.cli.manifests import Release, files_of
from konverge.errors import KonvergeError, NotFound
from konverge.k8s.apps.v1 import Deployment, StatefulSet
from konverge.k8s.core.v1 import ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service
from konverge.k8s.networking.v1 import Ingress
from konverge.objects import Resource
from konverge.testing import ControlPlane
from konverge_cluster.nodes import Behavior, SimulatedNodes
from konverge_cluster.volumes import create_default_class
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import new_operator
from shop_apps import NAME, NAMESPACE, credentials, sample
from volume_clusters import provisioner

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=600), pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
HOME = "shop-system"
POD_MONITOR = "podmonitors.monitoring.coreos.com"
FRONTEND, BACKEND, DATABASE = f"{NAME}-frontend", f"{NAME}-backend", f"{NAME}-database"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def crd(plural: str, kind: str) -> Unstructured:
    """Return a CRD of the Prometheus operator that accepts anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": kind}
    spec = {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return Unstructured(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": f"{plural}.monitoring.coreos.com"},
        spec=spec,
    )


@asynccontextmanager
async def cluster(plane: ControlPlane) -> AsyncGenerator[tuple[Client, SimulatedNodes]]:
    """Run simulated nodes and a provisioner on a control plane, with the generated permissions installed."""
    release = Release(operator=new_operator(), target="konverge_operators.ecommerce", namespace=HOME, image="e:1")
    files = files_of(release)
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin:
        for name in ("namespace", "rbac", "operator", "crds"):
            for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
                await admin.apply(Unstructured(one), force=True)
        await admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE, labels=RESTRICTED)))
        nodes = SimulatedNodes(admin, nodes=2)
        await create_default_class(admin)
        async with provisioner(admin), nodes.running():
            yield admin, nodes


@asynccontextmanager
async def operating(plane: ControlPlane) -> AsyncGenerator[Manager]:
    """Run the operator as its service account."""
    operator = new_operator()
    account = f"system:serviceaccount:{HOME}:{operator.name}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    manager = operator.manager(load_config(kubeconfig=plane.kubeconfig_for(account, groups=groups)))
    async with manager.running():
        yield manager


async def until(claim: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until a check returns True; an API error counts as False."""
    try:
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    if await claim():
                        return
                except KonvergeError:
                    pass
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not within {LIMIT} s: {what}") from None


async def app_of(client: Client) -> EcommerceApp:
    return await client.get(EcommerceApp, NAME, namespace=NAMESPACE)


async def until_phase(client: Client, phase: Phase) -> None:
    async def has_phase() -> bool:
        app = await app_of(client)
        return app.status.phase is phase and app.status.observed_generation == app.metadata.generation

    await until(has_phase, f"phase {phase}")


def writes_of(plane: ControlPlane, verbs: set[str]) -> list[tuple[str, str, str]]:
    """Return verb, resource and name of the successful writes of the operator, in the order of the audit log."""
    found = []
    for line in plane.audit_log.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        mine = event["user"]["username"].endswith(f":{HOME}:ecommerce-operator")
        if mine and event["verb"] in verbs and event.get("responseStatus", {}).get("code", 500) < 300:
            reference = event["objectRef"]
            if not reference.get("subresource"):
                found.append((event["verb"], reference["resource"], reference.get("name", "")))
    return found


async def test_the_life_of_the_sample() -> None:
    with ControlPlane(controller_manager=True, audit=True) as plane:
        async with cluster(plane) as (client, nodes), operating(plane):
            await client.create(sample())
            await nothing_is_exposed_without_credentials(client)
            await client.create(credentials())
            await until_phase(client, Phase.RUNNING)
            components_were_created_in_order(plane)
            await children_are_repaired(client)
            await monitoring_follows_the_spec_and_the_crds(client)
            await a_failing_database_touches_nothing_else(plane, client, nodes)
            await deletion_keeps_the_claims(plane, client)


async def nothing_is_exposed_without_credentials(client: Client) -> None:
    async def is_waiting() -> bool:
        components = {one.name: one for one in (await app_of(client)).status.components}
        ingress, frontend = components.get("ingress"), components.get("frontend")
        return bool(ingress and ingress.reason == "AuthenticationNotConfigured" and frontend and frontend.ready)

    await until(is_waiting, "AuthenticationNotConfigured")
    assert not await client.list(Ingress, namespace=NAMESPACE)


def components_were_created_in_order(plane: ControlPlane) -> None:
    first = [(resource, name) for _, resource, name in writes_of(plane, {"patch", "create"})]
    order = [("statefulsets", DATABASE), ("deployments", BACKEND), ("deployments", FRONTEND), ("ingresses", NAME)]
    assert [first.index(one) for one in order] == sorted(first.index(one) for one in order)
    assert first.index(("deployments", FRONTEND)) < first.index(("configmaps", f"{NAME}-dashboard"))


async def children_are_repaired(client: Client) -> None:
    kinds: list[tuple[type[Resource], str]] = [(Deployment, BACKEND), (Service, FRONTEND), (Ingress, NAME)]
    for kind, name in kinds:
        before = await client.get(kind, name, namespace=NAMESPACE)
        await client.delete(kind, name, namespace=NAMESPACE)

        async def is_back(kind: type[Resource] = kind, name: str = name, uid: str = before.uid) -> bool:
            return (await client.get(kind, name, namespace=NAMESPACE)).uid != uid

        await until(is_back, f"{kind.__name__} {name} is back")
    await client.patch(Deployment, FRONTEND, {"spec": {"replicas": 1}}, namespace=NAMESPACE)

    async def is_repaired() -> bool:
        return (await client.get(Deployment, FRONTEND, namespace=NAMESPACE)).spec.replicas == 3

    await until(is_repaired, "replicas are repaired")
    await until_phase(client, Phase.RUNNING)


async def monitoring_follows_the_spec_and_the_crds(client: Client) -> None:
    await client.create(crd("podmonitors", "PodMonitor"))
    await client.create(crd("prometheusrules", "PrometheusRule"))

    async def is_monitored() -> bool:
        return bool(await client.get(POD_MONITOR, NAME, namespace=NAMESPACE))

    await until(is_monitored, "a PodMonitor once its CRD exists")
    await client.patch(EcommerceApp, NAME, {"spec": {"monitoring": {"enabled": False}}}, namespace=NAMESPACE)

    async def is_removed() -> bool:
        maps = {one.name for one in await client.list(ConfigMap, namespace=NAMESPACE)}
        monitors = await client.list(POD_MONITOR, namespace=NAMESPACE)
        return f"{NAME}-dashboard" not in maps and not monitors

    await until(is_removed, "monitoring is removed")
    await until_phase(client, Phase.RUNNING)


async def a_failing_database_touches_nothing_else(plane: ControlPlane, client: Client, nodes: SimulatedNodes) -> None:
    before = len(writes_of(plane, {"patch", "create", "delete"}))
    nodes.program(Behavior(image="postgres:*", never_ready=True))
    await client.delete(Pod, f"{DATABASE}-0", namespace=NAMESPACE)
    await until_phase(client, Phase.DEGRADED)
    later = writes_of(plane, {"patch", "create", "delete"})[before:]
    assert not [one for one in later if one[1] in ("deployments", "services", "ingresses")]


async def deletion_keeps_the_claims(plane: ControlPlane, client: Client) -> None:
    claims = {one.name for one in await client.list(PersistentVolumeClaim, namespace=NAMESPACE)}
    await client.delete(EcommerceApp, NAME, namespace=NAMESPACE)

    async def is_gone() -> bool:
        try:
            await app_of(client)
        except NotFound:
            return True
        return False

    await until(is_gone, "the application is gone")
    assert not await client.list(Deployment, namespace=NAMESPACE)
    assert not await client.list(StatefulSet, namespace=NAMESPACE)
    assert {one.name for one in await client.list(PersistentVolumeClaim, namespace=NAMESPACE)} == claims
    deleted = [
        name for _, resource, name in writes_of(plane, {"delete"}) if resource in ("deployments", "statefulsets")
    ]
    last = [max(place for place, one in enumerate(deleted) if one == name) for name in (FRONTEND, BACKEND, DATABASE)]
    assert last == sorted(last)
