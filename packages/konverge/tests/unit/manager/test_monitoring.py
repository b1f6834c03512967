"""The health checks and metrics of one process, as its probes and dashboards see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry, Counter

from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, Context, Manager, Result, controller_for
from konverge.manager import LeaderElection
from konverge.manager.background import background
from konverge.queue import Backoff
from konverge.reconcile import EventLimits
from konverge.testing.faults import RecordedRequest, forbidden, lists, status_response, watches


def election(identity: str) -> LeaderElection:
    return LeaderElection("gadgets", "default", identity=identity, clock=asyncio.get_running_loop().time)


def manager_of(world: World, *, identity: str = "me") -> Manager:
    return Manager(world.operator_client(), name="gadget-operator", leader_election=election(identity))


def value(registry: CollectorRegistry, name: str, /, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


async def reconcile_nothing(_obj: Gadget, _ctx: Context) -> None:
    return None


async def test_the_metrics_of_a_process_are_those_of_its_controllers_caches_leases_and_events() -> None:
    world = await world_with_gadgets()
    for name in ("active", "bad", "good", "later"):
        await world.client.create(gadget(name))

    async def reconcile(obj: Gadget, ctx: Context) -> Result | None:
        if obj.name == "active":
            ctx.event("Started", "works")
            await asyncio.sleep(100)
        if obj.name == "bad":
            raise RuntimeError("bad")
        return Result.requeue(after=50) if obj.name == "later" else None

    manager = manager_of(world)
    steady = Backoff(jitter=0.0)
    manager.add(controller_for(Gadget).max_concurrent_reconciles(3).backoff(steady).build(reconcile))
    async with manager.running() as running:
        await asyncio.sleep(10)  # the key that fails was tried at 0, 1, 3 and 7 s
        registry = running.monitoring.registry
        controller = {"controller": "gadget"}
        assert value(registry, "konverge_workers", **controller) == 3
        assert value(registry, "konverge_active_workers", **controller) == 1
        assert value(registry, "konverge_longest_running_reconcile_seconds", **controller) == pytest.approx(10)
        assert value(registry, "konverge_unfinished_work_seconds", **controller) == pytest.approx(10)
        assert value(registry, "workqueue_depth", **controller, name="gadget") == 0
        assert value(registry, "konverge_queue_adds_total", **controller) == 5
        assert value(registry, "konverge_queue_retries_total", **controller) == 4
        assert value(registry, "konverge_queue_delayed", **controller) == 2
        assert value(registry, "reconcile_total", **controller, result="success") == 1
        kind = {"kind": "Gadget.test.konverge.dev/v1", "namespace": ""}
        assert value(registry, "konverge_cache_objects", **kind) == 4
        assert (value(registry, "konverge_cache_bytes", **kind) or 0) > 400
        assert value(registry, "konverge_cache_not_synced", **kind) == 0
        assert value(registry, "konverge_watch_idle_seconds", **kind) == pytest.approx(10)
        assert value(registry, "konverge_reflector_watches_total", **kind) == 1
        assert value(registry, "konverge_reflector_lists_total", **kind) == 1
        assert value(registry, "konverge_reflector_failures_total", **kind) == 0
        assert value(registry, "konverge_reflector_state", **kind, state="watching") == 1
        assert value(registry, "konverge_leader", lease="gadgets") == 1
        assert value(registry, "konverge_events_written_total") == 2  # LeaderElected, Started
        assert value(registry, "konverge_client_requests_total", verb="watch", kind="Gadget", code="200") == 1
        assert value(registry, "konverge_collect_failures_total") == 0


async def test_a_standby_is_no_leader_in_its_metrics() -> None:
    world = await world_with_gadgets()
    leader, standby = manager_of(world, identity="first"), manager_of(World.beside(world), identity="second")
    for manager in (leader, standby):
        manager.add(controller_for(Gadget).build(reconcile_nothing))
    async with leader.running() as first:
        await asyncio.sleep(5)
        async with standby.running() as second:
            await asyncio.sleep(5)
            leads = [value(one.monitoring.registry, "konverge_leader", lease="gadgets") for one in (first, second)]
            assert leads == [1, 0]


async def test_events_are_counted_by_why_they_were_dropped() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))

    async def reconcile(_obj: Gadget, ctx: Context) -> None:
        for number in range(20):
            ctx.event(f"Reason{number}", "often")

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.limit_events(EventLimits(object_burst=5))
    manager.add(controller_for(Gadget).build(reconcile))
    async with manager.running() as running:
        await asyncio.sleep(20)
        registry = running.monitoring.registry
        written = value(registry, "konverge_events_written_total") or 0
        dropped = {
            reason: value(registry, "konverge_events_dropped_total", reason=reason)
            for reason in ("limit", "queue", "failed", "stopped")
        }
        assert 0 < written <= 5
        assert dropped == {"limit": 20 - written, "queue": 0, "failed": 0, "stopped": 0}


async def test_a_watch_that_fails_for_more_than_ten_seconds_is_not_ready_and_named() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator", namespaces=("shop",))
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    down = status_response(500, reason="InternalError", message="etcd is away")
    async with manager.running() as running:
        await asyncio.sleep(5)
        ready = running.monitoring.health.ready
        assert ready().text() == "ok"
        with world.transport.script.active(watches("gadgets"), down), world.transport.script.active(lists(), down):
            world.transport.reset_streams()
            await asyncio.sleep(8)
            assert ready().text() == "ok"  # the restart of an API server
            await asyncio.sleep(20)
            text = ready().text()
            assert "[-]caches failed: Gadget in shop: " in text
            assert "etcd is away" in text
            kind = {"kind": "Gadget.test.konverge.dev/v1", "namespace": "shop"}
            assert (value(running.monitoring.registry, "konverge_reflector_failures_total", **kind) or 0) >= 2
        await asyncio.sleep(60)
        assert ready().text() == "ok"


async def test_a_start_that_waits_names_its_stage_and_what_is_missing() -> None:
    world = await world_with_gadgets()
    opening = asyncio.Event()

    @asynccontextmanager
    async def slow(_client: Client) -> AsyncGenerator[None]:
        await opening.wait()
        yield

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.share(slow)
    async with background(manager.serve()):
        await asyncio.sleep(1)
        assert manager._running is not None
        health = manager._running.monitoring.health
        report = health.ready().text()
        assert "[-]start failed: starting: shared" in report
        assert "[-]caches failed: not started" in report
        assert health.live().text(verbose=True).splitlines() == ["[+]ping ok", "[+]loop ok", "healthz check passed"]
        opening.set()
        await asyncio.sleep(1)
        assert health.ready().text(verbose=True).splitlines() == [
            *("[+]ping ok", "[+]start ok", "[+]caches ok", "[+]webhooks ok", "[+]lease ok", "[+]loop ok"),
            "readyz check passed",
        ]


async def test_a_lease_that_cannot_be_read_is_not_ready() -> None:
    world = await world_with_gadgets()
    manager = manager_of(world)
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    with world.transport.script.active(_leases, forbidden("get leases")):
        async with manager.running() as running:
            await asyncio.sleep(30)
            assert "[-]lease failed: gadgets: " in running.monitoring.health.ready().text()


def _leases(request: RecordedRequest) -> bool:
    return "/leases" in request.path


async def test_metrics_of_an_operator_are_exported_with_those_of_the_framework() -> None:
    world = await world_with_gadgets()
    orders = Counter("orders", "Orders", registry=None)
    orders.inc(3)
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.export(orders)
    async with manager.running() as running:
        assert value(running.monitoring.registry, "orders_total") == 3
