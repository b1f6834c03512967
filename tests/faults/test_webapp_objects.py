"""T30, T32: a namespace that is deleted with its content, and objects at the limits of what a server stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Client, Manager, ObjectMeta, Unstructured
from konverge.errors import ApiError, NotFound
from konverge.k8s.core.v1 import Namespace
from konverge.objects import to_wire
from konverge_cluster.testing import TestCluster
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import KINDS
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import FINALIZER, controllers
from webapps import webapp

MANY = 50
KIB = 1 << 10


@asynccontextmanager
async def operating(cluster: TestCluster) -> AsyncGenerator[tuple[Client, Manager]]:
    """Run the operator on a cluster; yield the client of a user."""
    client = await cluster.install(*operator.crds())
    async with cluster.operator(*controllers(), name=operator.name) as manager:
        yield client, manager


def named(name: str, namespace: str = "default", **spec: Any) -> WebApp:
    app = webapp(name, **{"replicas": 1, **spec})
    app.metadata.namespace = namespace
    return app


async def phases(client: Client, namespace: str = "default") -> dict[str, Phase]:
    return {app.name: app.status.phase for app in await client.list(WebApp, namespace=namespace)}


# T30


async def test_a_namespace_is_deleted_with_fifty_applications_and_their_finalizers(cluster: TestCluster) -> None:
    async with operating(cluster) as (client, manager):
        await client.create(Namespace(metadata=ObjectMeta(name="doomed")))
        await client.create(named("bystander"))
        for number in range(MANY):
            await client.create(named(f"web-{number}", "doomed", ingress={"host": "a.example.com"}))
        await cluster.settle()
        assert set((await phases(client, "doomed")).values()) == {Phase.READY}
        held = await client.list(WebApp, namespace="doomed")
        assert all(FINALIZER in app.metadata.finalizers for app in held)

        await client.delete(Namespace, "doomed")
        await cluster.settle()

        with pytest.raises(NotFound):
            await client.get(Namespace, "doomed")
        for kind in (WebApp, *KINDS):
            assert await client.list(kind, namespace="doomed") == []
        assert await phases(client) == {"bystander": Phase.READY}
        (stats,) = manager.stats()
        assert stats.queue.ready + stats.queue.in_flight == 0
        assert stats.queue.delayed == 1, "only the other application is requeued, nothing that is deleted"


# T32


def deep(levels: int) -> Any:
    found: Any = "the bottom"
    for _ in range(levels):
        found = {"a": found}
    return found


ODD: dict[str, dict[str, Any]] = {
    "large": {"spec": {"env": {f"A{number}": "x" * 10 * KIB for number in range(140)}}},
    "wordy": {"metadata": {"annotations": {"example.com/text": "x" * 255 * KIB}}},
    "unicode": {"spec": {"env": {"GREETING": "\U0001f44b\u202e\ufeff\u0627\u0301 \ufffd"}}},
    "nul": {"spec": {"env": {"NUL": "a\0b\x1b[31m\x7f\r\n"}}},
    "numbers": {"spec": {"extra": [2**63 - 1, -(2**63), 1e308, 0.1], "progressDeadlineSeconds": 2**31 - 1}},
    "huge-number": {"spec": {"progressDeadlineSeconds": 2**62}},
    "deep": {"spec": {"extra": deep(190)}},
    "deeper": {"spec": {"extra": deep(200)}},
    "deep-list": {"spec": {"extra": [[[[[]]]]] * 1000}},
}


def lenient_crds() -> list[Unstructured]:
    """Return the CRDs with schemas that preserve unknown fields."""
    found = operator.crds()
    for version in found[0]["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-preserve-unknown-fields"] = True
    return found


def odd(name: str) -> Unstructured:
    document = to_wire(named(name))
    for part, changes in ODD[name].items():
        document[part] = {**document[part], **changes}
    return Unstructured(document)


async def test_objects_at_the_limits_do_not_affect_others(cluster: TestCluster) -> None:
    client = await cluster.install(*lenient_crds())
    async with cluster.operator(*controllers(), name=operator.name):
        refused = {}
        for name in ODD:
            await client.create(named(f"before-{name}"))
            try:
                await client.create(odd(name))
            except ApiError as error:
                refused[name] = str(error)
        await asyncio.sleep(120)
        await client.create(named("last"))
        await asyncio.sleep(60)

        # The object itself has some levels of nesting as well, and servers have a limit.
        assert list(refused) == ["deeper"]
        found = {app.name: app.status for app in await client.list(WebApp, namespace="default")}
        good = [name for name in found if name not in ODD]
        assert [name for name in good if found[name].phase is not Phase.READY] == []
        assert len(good) == len(ODD) + 1
        # Each of the unusual objects is ready, or its status has the reason.
        assert {name for name in ODD if name in found and found[name].phase is not Phase.READY} == {"huge-number"}
        assert found["huge-number"].last_error
    deepest = await client.get("webapps.example.com", "deep")
    assert deepest["spec"]["extra"] == ODD["deep"]["spec"]["extra"], "unknown fields are preserved"
