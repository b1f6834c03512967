"""The options of a manager: what each of them changes, and which are refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, Manager, ObjectMeta, Reconciler, controller_for
from konverge.cache import CacheOptions
from konverge.client import RetryPolicy
from konverge.controller import EVENTS, LEASES
from konverge.errors import NotFound, ServerError
from konverge.k8s.coordination.v1 import Lease, LeaseSpec
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret
from konverge.k8s.events.v1 import Event
from konverge.manager import LeaderElection, RunnableContext
from konverge.manager.leader_elections import LeaderElections
from konverge.manager.running_manager import RunningManager
from konverge.manager.stages import open_stages
from konverge.manager.webhook_serving import WebhookServing
from konverge.objects import kind_of
from konverge.reconcile import ActiveReconcile, Journal, ReconcileObserver
from konverge.testing import settle
from konverge.testing.faults import status_response
from konverge.webhooks import Webhooks


async def reconcile_nothing(_obj: object, _ctx: Context) -> None:
    return None


def election(**options: Any) -> LeaderElection:
    return LeaderElection("gadgets", "default", clock=asyncio.get_running_loop().time, **options)


def test_wrong_options_are_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"namespaces must be a tuple: write namespaces=\('shop',\)"):
        Manager(namespaces="shop")  # type: ignore[arg-type]
    for grace in (-1, float("nan")):
        with pytest.raises(ValueError, match="grace must be 0 or more seconds, got"):
            Manager(grace=grace)
    Manager(grace=0)
    manager = Manager()
    manager.serve_webhooks(WebhookServing(hooks=Webhooks(), certificate="tls.crt", key="tls.key"))
    with pytest.raises(
        ValueError, match=r"^this manager already serves webhooks: put all of them into one WebhookServing$"
    ):
        manager.serve_webhooks(WebhookServing(hooks=Webhooks(), certificate="tls.crt", key="tls.key"))
    assert manager.name == "konverge"


def test_controllers_that_would_interfere_are_refused_by_name() -> None:
    manager = Manager()
    manager.add(controller_for(Gadget).owns(ConfigMap).build(reconcile_nothing))
    with pytest.raises(ValueError, match=r"^a controller named 'gadget' already exists: use \.named\(\.\.\.\)$"):
        manager.add(controller_for(Gadget).build(reconcile_nothing))
    same_children = controller_for(Gadget).named("second").owns(ConfigMap).build(reconcile_nothing)
    with pytest.raises(ValueError) as caught:
        manager.add(same_children)
    assert str(caught.value) == (
        "controllers 'gadget' and 'second' of Gadget both own ConfigMap: declare a kind of children with .owns() in one"
        " of them"
    )
    manager.add(controller_for(Gadget).named("second").build(reconcile_nothing))
    manager.add(controller_for(Namespace).owns(ConfigMap).build(reconcile_nothing))
    assert [one.name for one in manager.controllers] == ["gadget", "second", "namespace"]


class Finalizing(Reconciler[Gadget]):
    """Has a finalizer."""

    finalizer = "example.com/gadget"

    async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...


def test_two_controllers_of_a_kind_need_finalizers_of_their_own() -> None:
    manager = Manager()
    manager.add(controller_for(Gadget).build(Finalizing()))
    with pytest.raises(ValueError) as caught:
        manager.add(controller_for(Gadget).named("second").build(Finalizing()))
    assert str(caught.value) == (
        "controllers 'gadget' and 'second' of Gadget both have the finalizer 'example.com/gadget': each needs its own"
    )
    manager.add(controller_for(Gadget).named("third").build(reconcile_nothing))


def test_what_is_no_controller_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r" is not built: end it with \.build\(reconcile\)$"):
        Manager().add(controller_for(Gadget))  # type: ignore[arg-type]
    message = r"^create a controller with controller_for\(Kind\)\.build\(reconcile\), got 7$"
    with pytest.raises(TypeError, match=message):
        Manager().add(7)  # type: ignore[arg-type]


async def test_a_manager_that_does_not_run_has_no_numbers_and_no_histories() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client())
    assert manager.stats() == ()
    with pytest.raises(ValueError, match=r"^no controller 'gadget' is running \(there are: none\)$"):
        manager.why("gadget", Key("default", "a"))
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    with pytest.raises(ValueError, match=r"^no controller 'gadget' is running \(there are: gadget\)$"):
        manager.why("gadget", Key("default", "a"))
    async with manager.running() as running:
        assert [one.name for one in manager.stats()] == ["gadget"]
        assert (running.stage, running.lost_reason) == ("", "")
        message = "^this manager is already running: create another one for a second run$"
        with pytest.raises(RuntimeError, match=message):
            async with manager.running():
                pass
    assert manager.stats() == ()


async def test_by_default_a_stop_waits_twenty_seconds_for_reconciles() -> None:
    world, clock = await world_with_gadgets(), asyncio.get_running_loop().time
    ended: list[float] = []

    async def work(obj: Gadget, ctx: Context) -> None:
        try:
            await asyncio.sleep(19.9 if obj.name == "short" else 3600)
        finally:
            ended.append(clock())

    for name in ("short", "long"):
        await world.client.create(gadget(name))
    controller = controller_for(Gadget).max_concurrent_reconciles(2).build(work)
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller)
    async with manager.running():
        await settle()
        began = clock()
    assert [round(one - began, 1) for one in ended] == [19.9, 20.0]


async def test_the_permissions_of_a_process_include_a_lease_only_if_it_has_one() -> None:
    alone, elected, own, runs = Manager(), Manager(leader_election=election()), Manager(), Manager()
    runs_with_lease = Manager(leader_election=election())
    for manager in (alone, elected):
        manager.add(controller_for(Gadget).build(reconcile_nothing))
    own.add(controller_for(Gadget).build(reconcile_nothing), leader_election=election())
    for manager in (runs, runs_with_lease):
        manager.add_runnable(run_nothing)
    needed = set(controller_for(Gadget).build(reconcile_nothing).permissions())
    assert set(alone.permissions()) == {*needed, *EVENTS}
    assert set(elected.permissions()) == set(own.permissions()) == {*needed, *EVENTS, *LEASES}
    assert set(runs.permissions()) == set(EVENTS)
    assert set(runs_with_lease.permissions()) == {*EVENTS, *LEASES}
    assert list(elected.permissions()) == sorted(elected.permissions())


async def run_nothing(_ctx: RunnableContext) -> None:
    return None


def test_a_runnable_for_every_replica_needs_no_lease() -> None:
    manager = Manager(leader_election=LeaderElection("gadgets"))
    manager.add_runnable(run_nothing, leader_only=False)
    assert set(manager.permissions()) == set(EVENTS)
    with pytest.raises(TypeError, match="a runnable is an async function of its context"):
        manager.add_runnable(print)  # type: ignore[arg-type]


def test_the_stages_of_a_start_have_names_that_readiness_can_show() -> None:
    manager = Manager()

    def names() -> list[str]:
        running = RunningManager(manager._options, (), (), asyncio.Event())
        return [stage.name for stage in running.stages()]

    before, after = ["thread", "probes", "client", "events"], ["caches", "triggers", "lease", "workers", "runnables"]
    assert names() == [*before, "preflight", "shared", *after]
    manager.skip_permission_check()
    manager.serve_webhooks(WebhookServing(hooks=Webhooks(), certificate="tls.crt", key="tls.key"))
    assert names() == [*before, "shared", "certificates", "webhooks", *after]


async def test_a_process_is_limited_to_its_namespaces() -> None:
    world = await world_with_gadgets()
    runs: list[Key] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.key)

    for namespace in ("shop", "bank", "other"):
        await world.client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        obj = gadget("a")
        obj.metadata.namespace = namespace
        await world.client.create(obj)
    async with operating(world, controller_for(Gadget).build(reconcile), namespaces=("shop", "bank")):
        await settle()
    assert sorted(runs) == [Key("bank", "a"), Key("shop", "a")]


async def test_cache_options_can_be_set_by_kind() -> None:
    world = await world_with_gadgets()
    runs: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)

    for name in ("a", "b"):
        obj = gadget(name)
        obj.metadata.labels = {"name": name}
        await world.client.create(obj)
    by_kind = {kind_of(Gadget): CacheOptions(labels="name=b")}
    async with operating(world, controller_for(Gadget).build(reconcile), by_kind=by_kind):
        await settle()
    assert runs == ["b"]


async def test_children_are_applied_and_events_written_in_the_name_of_the_manager() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        ctx.event("Made", "a box")
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"a": "b"}))

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        await asyncio.sleep(5)
    box = await world.client.get(ConfigMap, "box")
    assert [one.manager for one in box.metadata.managed_fields or []] == ["gadget-operator"]
    events = [one for one in await world.client.list(Event) if one.reason == "Made"]
    assert [one.reporting_controller for one in events] == ["gadget"]
    assert events[0].reporting_instance


async def test_a_new_leader_is_an_event_of_its_lease() -> None:
    world = await world_with_gadgets()
    async with operating(
        world, controller_for(Gadget).build(reconcile_nothing), leader_election=election(identity="me")
    ):
        await asyncio.sleep(5)
        (event,) = await world.client.list(Event)
    assert (event.reason, event.note, event.action) == ("LeaderElection", "me became leader", "Elect")
    assert event.reporting_instance == "me"
    assert event.regarding is not None
    assert (event.regarding.kind, event.regarding.name, event.regarding.namespace) == ("Lease", "gadgets", "default")
    assert event.regarding.api_version == "coordination.k8s.io/v1"


async def test_a_lease_without_a_namespace_is_in_that_of_the_client() -> None:
    world = await world_with_gadgets()
    unplaced = LeaderElection("gadgets", clock=asyncio.get_running_loop().time, identity="me")
    async with operating(world, controller_for(Gadget).build(reconcile_nothing), leader_election=unplaced):
        await asyncio.sleep(5)
        assert [one.key for one in await world.client.list(Lease)] == [Key("default", "gadgets")]
        (event,) = await world.client.list(Event)
        assert event.namespace == "default"


async def test_a_lease_and_its_event_may_be_in_another_namespace_than_that_of_the_client() -> None:
    world = await world_with_gadgets()
    await world.client.create(Namespace(metadata=ObjectMeta(name="leases")))
    placed = LeaderElection("gadgets", "leases", clock=asyncio.get_running_loop().time, identity="me")
    async with operating(world, controller_for(Gadget).build(reconcile_nothing), leader_election=placed):
        await asyncio.sleep(5)
        assert [one.key for one in await world.client.list(Lease, namespace="")] == [Key("leases", "gadgets")]
        (event,) = await world.client.list(Event, namespace="leases")
        assert event.regarding is not None
        assert event.regarding.namespace == "leases"


def test_two_leases_of_one_name_are_refused() -> None:
    elections = {"a": LeaderElection("op", "east"), "b": LeaderElection("op", "west"), "c": None}
    with pytest.raises(ValueError, match="two leases are called op, in different namespaces: use different names"):
        LeaderElections(elections)
    LeaderElections({**elections, "b": LeaderElection("op", "east")})


async def test_without_a_lease_every_process_renews_the_certificate_of_webhooks() -> None:
    world = await world_with_gadgets()
    secret = Key("default", "certificate")
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.serve_webhooks(
        WebhookServing(hooks=Webhooks(), host="127.0.0.1", port=0, secret=secret, hosts=("localhost",))
    )
    running = RunningManager(manager._options, manager.controllers, (), asyncio.Event())
    stages = [one for one in running.stages() if one.name in ("client", "certificates")]
    async with open_stages(stages, running.on_stage):
        assert (await world.client.get(Secret, secret)).data


async def test_callbacks_hear_of_each_change_of_the_leader() -> None:
    world = await world_with_gadgets()
    changes: list[tuple[str, bool]] = []
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election())
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.on_leader_change(lambda lease, leading: changes.append((lease, leading)))
    async with manager.running():
        await asyncio.sleep(5)
        assert changes == [("gadgets", True)]
    assert changes == [("gadgets", True), ("gadgets", False)]


class Begins(ReconcileObserver):
    """Counts reconciles."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self, reconcile: ActiveReconcile) -> None:
        self.count += 1


async def test_observers_and_a_journal_are_options_of_the_manager() -> None:
    world = await world_with_gadgets()
    observers = Begins(), Begins(), Begins()
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.observe(observers[0])
    manager.observe(*observers[1:])
    manager.use_journal(partial(Journal, limit_keys=2))
    for name in ("a", "b", "c"):
        await world.client.create(gadget(name))
    async with manager.running():
        await settle()
        assert [one.count for one in observers] == [3, 3, 3]
        histories = [manager.why("gadget", Key("default", name)) for name in ("a", "b", "c")]
        assert sorted(map(len, histories)) == [0, 1, 1]


async def test_a_tracer_makes_spans_of_reconciles_and_requests() -> None:
    world, exporter, provider = await world_with_gadgets(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.observe(begins := Begins())
    manager.trace(provider.get_tracer("test"))
    await world.client.create(gadget("a"))
    async with manager.running():
        await settle()
    names = {span.name for span in exporter.get_finished_spans()}
    assert {"reconcile gadget", "watch Gadget"} <= names
    assert begins.count == 1


async def test_the_handlers_that_run_now_are_named() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(60)

    for number in range(7):
        await world.client.create(gadget(f"a{number}"))
    controller = controller_for(Gadget).max_concurrent_reconciles(7).build(reconcile)
    async with operating(world, controller, grace=0) as manager:
        assert manager._running is not None
        assert manager._running.active_handlers() == ""
        await settle()
        names = manager._running.active_handlers().split(", ")
        assert names == [f"gadget default/a{number}" for number in range(5)], "the first five"


async def test_stepping_down_ends_all_terms_and_keeps_the_leases() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election(identity="me"))
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    second = LeaderElection("second", "default", identity="me", clock=asyncio.get_running_loop().time)
    manager.add(controller_for(Gadget).named("other").build(reconcile_nothing), leader_election=second)
    changes: list[tuple[str, bool]] = []
    manager.on_leader_change(lambda lease, leading: changes.append((lease, leading)))
    serving = asyncio.create_task(manager.serve())
    await asyncio.sleep(5)
    assert sorted(changes) == [("gadgets", True), ("second", True)]
    assert manager._running is not None
    manager._running.leader_elections.step_down("the loop is blocked")
    await asyncio.wait([serving])
    assert "the loop is blocked" in str(serving.exception())
    holders = [lease.spec.holder_identity for lease in await world.client.list(Lease) if lease.spec is not None]
    assert holders == ["me", "me"]


async def test_only_the_leader_renews_the_certificate_of_webhooks() -> None:
    world = await world_with_gadgets()
    secret = Key("default", "certificate")
    held = LeaseSpec(holder_identity="other", lease_duration_seconds=3_600)
    await world.client.create(Lease(metadata=ObjectMeta(name="gadgets", namespace="default"), spec=held))
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election())
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    manager.serve_webhooks(
        WebhookServing(hooks=Webhooks(), host="127.0.0.1", port=0, secret=secret, hosts=("localhost",))
    )
    running = RunningManager(
        replace(manager._options, controller_elections=manager._elections), manager.controllers, (), asyncio.Event()
    )
    stages = [one for one in running.stages() if one.name in ("client", "certificates")]
    async with open_stages(stages, running.on_stage):
        await world.client.delete(Secret, secret)
        await asyncio.sleep(120)
        with pytest.raises(NotFound):
            await world.client.get(Secret, secret)


async def test_the_retry_policy_of_requests_is_an_option() -> None:
    """Reads of a reconciler are retried by the default policy, and not by one without retries."""

    async def failures(policy: RetryPolicy | None) -> int:
        world = await world_with_gadgets()
        down = status_response(503, reason="ServiceUnavailable")
        world.transport.script.add(lambda request: request.path.endswith("/configmaps/box"), down, times=2)
        await world.client.create(gadget("a"))
        await world.client.create(ConfigMap(metadata=ObjectMeta(name="box", namespace="default")))
        errors: list[Exception] = []

        async def reconcile(obj: Gadget, ctx: Context) -> None:
            try:
                await ctx.client.get(ConfigMap, "box", namespace="default")
            except ServerError as error:
                errors.append(error)

        manager = Manager(world.operator_client(), name="gadget-operator")
        manager.add(controller_for(Gadget).build(reconcile))
        if policy is not None:
            manager.retry_requests(policy)
        async with manager.running():
            await asyncio.sleep(30)
        return len(errors)

    assert await failures(None) == 0
    assert await failures(RetryPolicy(attempts=1)) == 1


async def test_the_error_of_a_process_that_lost_its_lease_names_it() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election(identity="me"))
    manager.add(controller_for(Gadget).build(reconcile_nothing))
    serving = asyncio.create_task(manager.serve())
    await asyncio.sleep(5)
    lease = await world.client.get(Lease, "gadgets")
    assert lease.spec is not None
    lease.spec.holder_identity = "thief"
    await world.client.update(lease)
    await asyncio.wait([serving])
    assert "gadget-operator is no longer the leader: " in str(serving.exception())
    assert "(restart the process)" in str(serving.exception())


async def test_a_manager_that_is_told_to_stop_ends_and_can_serve_again() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator")
    for _ in range(2):
        serving = asyncio.create_task(manager.serve())
        await asyncio.sleep(5)
        assert not serving.done()
        manager.stop()
        await asyncio.sleep(5)
        assert serving.done()
        assert serving.exception() is None
