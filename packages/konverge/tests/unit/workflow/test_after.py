"""Components that come after others where those are enabled, and objects that a cleanup keeps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import pytest

from konverge import Client, Context, CustomResource, ObjectMeta, Spec
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import Operator
from konverge.objects import AnyObject, ObjectStatus
from konverge.workflow import (
    Component,
    DerivedPhase,
    Phases,
    Workflow,
    WorkflowReconciler,
    WorkflowState,
    WorkflowStatus,
    render_mermaid,
    render_svg,
)
from konverge_cluster.testing import TestCluster


class Phase(StrEnum):
    NEW = "New"
    DONE = "Done"


class PairSpec(Spec):
    cache: bool = True
    ready: bool = True
    """Whether what exists is ready."""
    keep: bool = False
    """Whether the cache is kept when it is removed."""


class PairStatus(WorkflowStatus):
    phase: Phase = Phase.NEW


class Pair(CustomResource[PairSpec, PairStatus], group="example.com", version="v1"):
    """An application that may have a cache."""


def _component(name: str, **options: Any) -> Component[Pair]:
    async def objects(pair: Pair, _ctx: Context) -> list[AnyObject]:
        return [ConfigMap(metadata=ObjectMeta(name=name), data={"cache": str(pair.spec.cache)})]

    def readiness(pair: Pair, _live: Sequence[AnyObject]) -> ObjectStatus:
        return ObjectStatus("Current" if pair.spec.ready else "InProgress")

    return Component(name, objects, kinds=(ConfigMap,), readiness=readiness, **options)


async def _release(pair: Pair, ctx: Context) -> None:
    if pair.spec.keep:
        await ctx.client.patch(ConfigMap, "cache", {"metadata": {"ownerReferences": None}})


def _derive(_pair: Pair, state: WorkflowState) -> DerivedPhase[Phase]:
    return DerivedPhase(Phase.DONE if state.ready else Phase.NEW, "Derived", state.message)


pairs: Workflow[Pair] = Workflow(
    kind=Pair,
    components=(
        _component("app", after=("cache",)),
        _component("cache", enabled=lambda pair: pair.spec.cache, cleanup=_release),
    ),
    phases=Phases(Phase.NEW, {Phase.NEW: {Phase.DONE}, Phase.DONE: {Phase.NEW}}, _derive),
)


class PairReconciler(WorkflowReconciler[Pair]):
    finalizer = "example.com/pair"
    workflow = pairs


def operator() -> Operator:
    builder = pairs.builder().needs(ConfigMap, "patch")
    return Operator(name="pair-operator", controllers=(builder.build(PairReconciler()),))


async def names(client: Client) -> set[str]:
    return {one.name for one in await client.list(ConfigMap, namespace="default")} & {"app", "cache"}


async def test_a_component_waits_for_another_only_where_that_is_enabled(cluster: TestCluster) -> None:
    client = cluster.client("default")
    async with cluster.operator(operator()):
        await client.create(Pair.new("pair", PairSpec(ready=False), namespace="default"))
        await cluster.settle()
        assert await names(client) == {"cache"}
        assert (await client.get(Pair, "pair")).status.message.startswith("waiting for app (waiting for cache")
        await client.patch(Pair, "pair", {"spec": {"ready": True}})
        await cluster.settle()
        assert await names(client) == {"app", "cache"}

        await client.delete(Pair, "pair")
        await cluster.settle()
        assert await names(client) == set()
        await client.create(Pair.new("pair", PairSpec(cache=False), namespace="default"))
        await cluster.settle()
        assert await names(client) == {"app"}


async def test_what_is_no_longer_enabled_is_removed_when_the_other_is_ready_without_it(cluster: TestCluster) -> None:
    client = cluster.client("default")
    async with cluster.operator(operator()):
        await client.create(Pair.new("pair", PairSpec(), namespace="default"))
        await cluster.settle()
        await client.patch(Pair, "pair", {"spec": {"cache": False, "ready": False}})
        await cluster.settle()
        assert (await client.get(ConfigMap, "app")).data == {"cache": "False"}
        assert await names(client) == {"app", "cache"}
        found = {one.name: one.message for one in (await client.get(Pair, "pair")).status.components}
        assert found["cache"] == "app must be ready without it first"
        await client.patch(Pair, "pair", {"spec": {"ready": True}})
        await cluster.settle()
        assert await names(client) == {"app"}


@pytest.mark.parametrize("whole", [True, False])
async def test_an_object_that_a_cleanup_releases_is_kept(cluster: TestCluster, whole: bool) -> None:
    client = cluster.client("default")
    async with cluster.operator(operator()):
        await client.create(Pair.new("pair", PairSpec(keep=True), namespace="default"))
        await cluster.settle()
        if whole:
            await client.delete(Pair, "pair")
        else:
            await client.patch(Pair, "pair", {"spec": {"cache": False}})
        await cluster.settle()
        assert await names(client) == ({"cache"} if whole else {"app", "cache"})
        assert not (await client.get(ConfigMap, "cache")).metadata.owner_references


def test_drawings_show_it_with_a_dashed_line() -> None:
    assert "    app -.-> cache\n" in render_mermaid(pairs)
    assert render_svg(pairs).count("stroke-dasharray") == 1


def test_a_cycle_is_found_across_both_sorts_of_dependencies() -> None:
    components = (_component("app", after=("cache",)), _component("cache", needs=("app",)))
    with pytest.raises(ValueError, match="app -> cache -> app"):
        Workflow(kind=Pair, components=components, phases=pairs.phases)
    with pytest.raises(ValueError, match="component app needs itself"):
        _component("app", after=("app",))
