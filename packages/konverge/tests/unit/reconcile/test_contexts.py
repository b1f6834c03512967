"""The context of a reconcile: reads and their record, events, deletes, results; the same from a thread."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, Key, Manager, ObjectMeta, Result, controller_for
from konverge.errors import AlreadyExists, ApplyConflict, Conflict, Invalid, NotFound, Retry, WriteRefused
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret
from konverge.k8s.events.v1 import Event
from konverge.reconcile import ActiveReconcile, BlockingContext, ReconcileObserver
from konverge.reconcile.owner_references import controller_reference
from konverge.reconcile.recreate import delete_for_recreate
from konverge.testing import settle


class Reads(ReconcileObserver):
    """Records what was read beside the object itself."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def read(self, reconcile: ActiveReconcile, kind: str, key: Key, found: str) -> None:
        if kind != "Gadget":
            self.found.append((kind, str(key), found))


async def filled_world() -> World:
    """A gadget "a", and ConfigMaps in two namespaces."""
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    await world.client.create(Namespace(metadata=ObjectMeta(name="shop")))
    for namespace, name, app in (("default", "one", "web"), ("default", "two", "db"), ("shop", "three", "web")):
        metadata = ObjectMeta(name=name, namespace=namespace, labels={"app": app})
        await world.client.create(ConfigMap(metadata=metadata, data={"app": app}))
    return world


@pytest.mark.parametrize("blocking", [False, True])
async def test_reads_come_from_the_namespace_of_the_object_and_are_recorded(blocking: bool) -> None:
    world, reads, results = await filled_world(), Reads(), list[Any]()

    def name_of(found: Any) -> Any:
        return sorted(one.name for one in found) if isinstance(found, list) else found and found.name

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="child")))
        reads.found.clear()
        results[:] = [
            name_of(await ctx.get(ConfigMap, "one")),
            name_of(await ctx.get(ConfigMap, "three", namespace="shop")),
            name_of(await ctx.get(ConfigMap, Key("default", "none"))),
            name_of(await ctx.get(Namespace, "shop")),
            name_of([one for one in await ctx.list(ConfigMap) if one.data]),
            name_of([one for one in await ctx.list(ConfigMap, namespace="") if one.data]),
            name_of(await ctx.list(ConfigMap, labels="app=web")),
            name_of(ctx.owned(ConfigMap)),
            name_of(ctx.find(ConfigMap, "app", "web")),
            name_of(ctx.find(ConfigMap, "app", "web", namespace="shop")),
            ctx.is_served(ConfigMap),
            ctx.shared(str),
        ]

    def reconcile_in_thread(obj: Gadget, ctx: BlockingContext) -> None:
        ctx.apply(ConfigMap(metadata=ObjectMeta(name="child")))
        reads.found.clear()
        results[:] = [
            name_of(ctx.get(ConfigMap, "one")),
            name_of(ctx.get(ConfigMap, "three", namespace="shop")),
            name_of(ctx.get(ConfigMap, Key("default", "none"))),
            name_of(ctx.get(Namespace, "shop")),
            name_of([one for one in ctx.list(ConfigMap) if one.data]),
            name_of([one for one in ctx.list(ConfigMap, namespace="") if one.data]),
            name_of(ctx.list(ConfigMap, labels="app=web")),
            name_of(ctx.owned(ConfigMap)),
            name_of(ctx.find(ConfigMap, "app", "web")),
            name_of(ctx.find(ConfigMap, "app", "web", namespace="shop")),
            ctx.is_served(ConfigMap),
            ctx.shared(str),
        ]
        assert ctx.call(ctx.client.get(ConfigMap, "one")).name == "one"
        assert (ctx.key, ctx.controller, ctx.attempt, ctx.last_error) == (obj.key, "gadget", 1, "")

    @asynccontextmanager
    async def open_text(_client: Client) -> AsyncGenerator[str]:
        yield "shared"

    builder = controller_for(Gadget).owns(ConfigMap).watches(Namespace, lambda _: ())
    builder = builder.index(ConfigMap, "app", ".data.app")
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(builder.build(reconcile_in_thread if blocking else reconcile))
    manager.observe(reads)
    manager.share(open_text)
    async with manager.running():
        await settle()
        await asyncio.sleep(1)
    assert results == [
        *("one", "three", None, "shop", ["one", "two"], ["one", "three", "two"], ["one"], ["child"]),
        *(["one", "three"], ["three"], True, "shared"),
    ]
    found = [one for one in reads.found if one[1] != "default/child"]
    by_key = {(kind, key): text for kind, key, text in found}
    assert by_key["ConfigMap", "default/one"].isdecimal()
    assert by_key["ConfigMap", "shop/three"].isdecimal()
    assert by_key["ConfigMap", "default/none"] == ""
    assert by_key["Namespace", "shop"].isdecimal()
    assert found[4:] == [
        ("ConfigMap", "default/", "3 objects"),
        ("ConfigMap", "", "4 objects"),
        ("ConfigMap", "default/", "1 objects"),
        ("ConfigMap", "default/", "1 owned"),
        ("ConfigMap", "", "2 by app"),
        ("ConfigMap", "shop/", "1 by app"),
    ]


@pytest.mark.parametrize("fails", [False, True])
async def test_the_context_of_a_reconcile_is_not_left_to_the_garbage_collector(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="konverge.controller")  # a captured record would keep the error
    world, contexts, was_enabled = await filled_world(), list[weakref.ref[Context]](), gc.isenabled()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        contexts.append(weakref.ref(ctx))
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="child"), data={"size": str(obj.spec.size)}))
        ctx.owned(ConfigMap)
        ctx.event("Made", "a box")
        ctx.log.debug("made")
        ctx.set_ready(obj, True, reason="Done")
        await ctx.update_status(obj)
        await ctx.prune(ConfigMap)
        if fails and len(contexts) == 1:
            raise Retry("not yet", after=1)

    gc.disable()
    try:
        async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
            await settle()
            await world.client.patch(Gadget, "a", {"spec": {"size": 2}})
            await settle()
            found = [context() for context in contexts]
    finally:
        if was_enabled:
            gc.enable()
    assert found == [None] * len(found)
    assert len(found) >= 2


@pytest.mark.parametrize("blocking", [False, True])
async def test_events_deletes_and_conditions(blocking: bool) -> None:
    world, results = await filled_world(), list[Any]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        ctx.event("Made", "a box", action="Make")
        ctx.event("Lost", "a box", warning=True)
        one = await ctx.get(ConfigMap, "one")
        assert one is not None
        for _ in range(2):
            await ctx.delete(one)
        results[:] = [
            ctx.condition(obj, "Painted", False, reason="NoPaint", message="no paint"),
            ctx.condition(obj, "Painted", False, reason="NoPaint", message="no paint"),
            ctx.set_ready(obj, True, reason="Done", message="all done"),
        ]
        await ctx.update_status(obj)

    def reconcile_in_thread(obj: Gadget, ctx: BlockingContext) -> None:
        ctx.event("Made", "a box", action="Make")
        ctx.event("Lost", "a box", warning=True)
        one = ctx.get(ConfigMap, "one")
        assert one is not None
        for _ in range(2):
            ctx.delete(one)
        results[:] = [
            ctx.condition(obj, "Painted", False, reason="NoPaint", message="no paint"),
            ctx.condition(obj, "Painted", False, reason="NoPaint", message="no paint"),
            ctx.set_ready(obj, True, reason="Done", message="all done"),
        ]
        ctx.update_status(obj)

    async def once(obj: Gadget, ctx: Context) -> None:
        if not results:
            await reconcile(obj, ctx)

    def once_in_thread(obj: Gadget, ctx: BlockingContext) -> None:
        if not results:
            reconcile_in_thread(obj, ctx)

    builder = controller_for(Gadget).watches(ConfigMap, lambda _: ())
    async with operating(world, builder.build(once_in_thread if blocking else once)):
        await asyncio.sleep(5)
    assert results == [True, False, True]
    with pytest.raises(NotFound):
        await world.client.get(ConfigMap, "one")
    events = {one.reason: (one.type, one.note, one.action) for one in await world.client.list(Event)}
    assert events["Made"] == ("Normal", "a box", "Make")
    assert events["Lost"] == ("Warning", "a box", "Lost")
    stored = {one.type: one for one in (await world.client.get(Gadget, "a")).status.conditions}
    painted, ready = stored["Painted"], stored["Ready"]
    assert (painted.status, painted.reason, painted.message) == ("False", "NoPaint", "no paint")
    assert (ready.status, ready.reason, ready.message, ready.observed_generation) == ("True", "Done", "all done", 1)


@pytest.mark.parametrize("blocking", [False, True])
async def test_prune_keeps_what_its_selector_does_not_match(blocking: bool) -> None:
    world, runs = await filled_world(), list[int]()

    def child(name: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=name, labels={"tier": name}))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(1)
        if len(runs) == 1:
            for name in ("front", "back"):
                await ctx.apply(child(name))
        else:
            await ctx.prune(ConfigMap, labels="tier=back")

    def reconcile_in_thread(obj: Gadget, ctx: BlockingContext) -> None:
        runs.append(1)
        if len(runs) == 1:
            for name in ("front", "back"):
                ctx.apply(child(name))
        else:
            ctx.prune(ConfigMap, labels="tier=back")

    builder = controller_for(Gadget).owns(ConfigMap)
    async with operating(world, builder.build(reconcile_in_thread if blocking else reconcile)):
        await asyncio.sleep(1)
        await world.client.patch(Gadget, "a", {"spec": {"size": 7}})
        await asyncio.sleep(1)
        names = {one.name for one in await world.client.list(ConfigMap, namespace="default")}
    assert names == {"one", "two", "front"}


async def test_an_error_in_a_thread_is_the_error_of_the_reconcile() -> None:
    world, errors = await filled_world(), list[str]()

    def reconcile(obj: Gadget, ctx: BlockingContext) -> Result:
        errors.append(ctx.last_error)
        if len(errors) == 1:
            raise RuntimeError("in the thread")
        return Result.done()

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await asyncio.sleep(5)
    assert errors == ["", "in the thread"]


async def test_a_blocking_context_rejects_calls_after_its_deadline() -> None:
    world, errors = await filled_world(), list[Exception]()

    def reconcile(obj: Gadget, ctx: BlockingContext) -> None:
        ctx.reject_calls()
        try:
            ctx.get(ConfigMap, "one")
        except WriteRefused as error:
            errors.append(error)

    async with operating(world, controller_for(Gadget).watches(ConfigMap, lambda _: ()).build(reconcile)):
        await asyncio.sleep(1)
    assert "the call was not made" in str(errors[0])


def test_a_result_reads_as_what_it_does() -> None:
    assert str(Result.done()) == "done"
    assert str(Result.requeue()) == "requeue"
    assert str(Result.requeue(2.5, reason="no pods")) == "requeue after 2.5 s (no pods)"
    assert Result.requeue(3) == Result(3.0, "")
    assert Result.requeue(1, reason="x").reason == "x"
    for wrong in (-1, float("inf"), float("nan"), "3"):
        with pytest.raises(ValueError, match=f"^after is a number of seconds, 0 or more, got {wrong!r}$"):
            Result.requeue(wrong)  # type: ignore[arg-type]


# Objects that are created again


REJECTED = Invalid("field is immutable", status=422)


async def test_an_object_is_deleted_only_if_it_is_the_one_that_was_rejected() -> None:
    world = await filled_world()
    one = await world.client.get(ConfigMap, "one")
    desired = ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={"a": "b"})

    async def delete(
        uid: str, wanted: ConfigMap = desired, propagation: Literal["Background", "Foreground"] = "Background"
    ) -> None:
        await delete_for_recreate(world.client, wanted, REJECTED, kind=ConfigMap, uid=uid, propagation=propagation)

    with pytest.raises(Conflict, match=r": another object has the name now, nothing was deleted$") as caught:
        await delete("another")
    error = caught.value
    assert (error.status, error.verb, error.kind, error.key) == (409, "apply", "ConfigMap", "default/one")
    invalid = ConfigMap(metadata=ObjectMeta(name="one", namespace="default", labels={"not a name": "x"}))
    with pytest.raises(Invalid, match="field is immutable"):
        await delete(one.uid, invalid)
    assert (await world.client.get(ConfigMap, "one")).uid == one.uid
    await delete(one.uid)
    with pytest.raises(NotFound):
        await world.client.get(ConfigMap, "one")
    await delete(one.uid)  # it is gone
    two = await world.client.get(ConfigMap, "two")
    desired.metadata.name = "two"
    with pytest.raises(AlreadyExists):
        await delete(two.uid, propagation="Foreground")
    assert (await world.client.get(ConfigMap, "two")).metadata.finalizers == ["foregroundDeletion"]


async def test_an_object_that_waits_for_its_finalizer_is_not_created_again_yet() -> None:
    world = await filled_world()
    metadata = ObjectMeta(name="held", namespace="default", finalizers=["example.com/held"])
    held = await world.client.create(Secret(metadata=metadata))
    desired = Secret(metadata=ObjectMeta(name="held", namespace="default"))
    for _ in range(2):  # it is deleted by the first call, and being deleted at the second
        with pytest.raises(
            AlreadyExists, match=r": the old object is being deleted, and a new one is created when it is gone$"
        ) as caught:
            await delete_for_recreate(
                world.client, desired, REJECTED, kind=Secret, uid=held.uid, propagation="Background"
            )
        error = caught.value
        assert (error.status, error.reason, error.verb) == (409, "AlreadyExists", "apply")
        assert (error.kind, error.key, error.__cause__) == ("Secret", "default/held", REJECTED)


# Namespaces


async def test_every_verb_works_in_the_namespace_of_the_object_not_in_that_of_the_client() -> None:
    world, found = await world_with_gadgets(), list[Any]()
    await world.client.create(Namespace(metadata=ObjectMeta(name="shop")))
    lamp = gadget("lamp")
    lamp.metadata.namespace = "shop"
    lamp = await world.client.create(lamp)
    reference = controller_reference(lamp)
    elsewhere = ObjectMeta(name="elsewhere", namespace="default", owner_references=[reference])
    await world.client.create(ConfigMap(metadata=elsewhere))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if found:
            return
        box = ConfigMap(metadata=ObjectMeta(name="box"), data={"a": "1", "b": "2"})
        applied = await ctx.apply(box)
        await ctx.hand_over(box, ".data.a", to="human")
        fields = await ctx.foreign_fields(box)
        secret = await ctx.create_once(Secret(metadata=ObjectMeta(name="password")))
        found.extend([applied.key, [(one.path, one.manager) for one in fields], secret.key])
        found.append([one.key for one in ctx.owned(ConfigMap)])
        ctx.event("Made", "a box")
        ctx.event("Used", "by another", regarding=applied, reporter="another")

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        await asyncio.sleep(5)
    assert found == [Key("shop", "box"), [(".data.a", "human")], Key("shop", "password"), [Key("shop", "box")]]
    events = {one.reason: one for one in await world.client.list(Event, namespace="shop")}
    made, used = events["Made"], events["Used"]
    assert made.regarding is not None
    assert used.regarding is not None
    assert (made.regarding.kind, made.regarding.name, made.reporting_controller) == ("Gadget", "lamp", "gadget")
    assert (used.regarding.kind, used.regarding.name, used.reporting_controller) == ("ConfigMap", "box", "another")


async def test_the_log_of_a_reconcile_has_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    world, ids = await filled_world(), list[str]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        ids.append(ctx.reconcile_id)
        ctx.log.warning("at work")

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
    (record,) = [one for one in caplog.records if one.getMessage() == "at work"]
    fields = vars(record)
    assert (fields["kind"], fields["key"], fields["attempt"]) == ("Gadget", "default/a", 1)
    assert [fields["reconcile_id"]] == ids


async def test_a_read_only_controller_may_not_write_a_status() -> None:
    world, errors = await filled_world(), list[str]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            await ctx.update_status(obj)
        except ValueError as error:
            errors.append(str(error))

    async with operating(world, controller_for(Gadget).read_only().build(reconcile)):
        await settle()
    assert errors == ["controller gadget is read_only: it may not write the status of Gadget default/a"]


async def test_ready_sets_the_observed_generation_and_a_list_of_conditions_that_is_missing() -> None:
    world, changes = await filled_world(), list[bool]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if changes:
            return
        status: Any = obj.status
        status.conditions = None
        changes.append(ctx.set_ready(obj, "Unknown", reason="Starting"))
        changes.append(ctx.set_ready(obj, "Unknown", reason="Starting"))
        status.observed_generation = 0
        changes.append(ctx.set_ready(obj, "Unknown", reason="Starting"))
        await ctx.update_status(obj)

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
    assert changes == [True, False, True]
    status = (await world.client.get(Gadget, "a")).status
    (ready,) = status.conditions
    assert (ready.type, ready.status, ready.reason, ready.message) == ("Ready", "Unknown", "Starting", "")
    assert (status.observed_generation, ready.observed_generation) == (1, 1)


async def test_a_delete_says_what_happens_to_children_and_may_insist_on_the_object() -> None:
    world, errors = await filled_world(), list[Any]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if errors:
            return
        one = await world.client.get(ConfigMap, "one")
        await ctx.delete(one, propagation="Foreground")
        errors.append((await world.client.get(ConfigMap, "one")).metadata.finalizers)
        two = await world.client.get(ConfigMap, "two")
        await ctx.delete(two)
        await ctx.delete(two)
        with pytest.raises(NotFound):
            await ctx.delete(two, missing_ok=False)

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
    assert errors == [["foregroundDeletion"]]


async def test_what_was_not_applied_is_named() -> None:
    world, errors = await filled_world(), list[str]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            ctx.applied(ConfigMap(metadata=ObjectMeta(name="box", namespace="shop")))
        except ValueError as error:
            errors.append(str(error))

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
    assert errors == ["ConfigMap shop/box was not applied in this reconcile: call ctx.apply first"]


# Options of the verbs


class Verbs:
    """The verbs with all their options, called from a reconcile: as coroutines, or from a thread."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    async def __call__(self, verb: str, *args: Any, **options: Any) -> Any:
        if isinstance(self.ctx, BlockingContext):
            return await asyncio.to_thread(lambda: getattr(self.ctx, verb)(*args, **options))
        result = getattr(self.ctx, verb)(*args, **options)
        return await result if inspect.isawaitable(result) else result


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.real_time(limit=60)
async def test_the_options_of_the_verbs_are_passed_on(blocking: bool) -> None:
    world, found = await filled_world(), dict[str, Any]()
    done = asyncio.Event()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if found:
            return
        found["begun"] = True
        call = Verbs(BlockingContext(ctx, asyncio.get_running_loop()) if blocking else ctx)
        box = ConfigMap(metadata=ObjectMeta(name="box"), data={"a": "1"})
        owned = await call("apply", box)
        found["owned"] = [one.uid == obj.uid for one in owned.metadata.owner_references]
        unowned = ConfigMap(metadata=ObjectMeta(name="unowned", namespace="default"), data={"a": "1"})
        found["unowned"] = (await call("apply", unowned, owned=False)).metadata.owner_references
        await world.client.using(field_manager="human").apply(
            ConfigMap(metadata=ObjectMeta(name="box", namespace="default"), data={"a": "2"}), force=True
        )
        box.data = {"a": "3"}
        with pytest.raises(ApplyConflict):
            await call("apply", box, force=False)
        found["forced"] = (await call("apply", box)).data
        found["applied"] = str(await call("applied", box))
        for name, options in (("mine", {}), ("nobody's", {"owned": False})):
            metadata = ObjectMeta(name=name.replace("'", ""), namespace="default")
            made = await call("create_once", Secret(metadata=metadata), **options)
            found[name] = [one.uid == obj.uid for one in made.metadata.owner_references]
        gone = await world.client.get(ConfigMap, "two")
        await world.client.delete(gone)
        await call("delete", gone)
        with pytest.raises(NotFound):
            await call("delete", gone, missing_ok=False)
        found["condition"] = await call("condition", obj, "Painted", "Unknown", reason="NoPaint")
        found["ready"] = await call("set_ready", obj, False, reason="NoPaint")
        updated = await call("update_status", obj)
        found["messages"] = [(one.type, one.status, one.message) for one in updated.status.conditions]
        await call("event", "Made", "a box")
        done.set()

    builder = controller_for(Gadget).owns(ConfigMap)
    async with operating(world, builder.build(reconcile)):
        await asyncio.wait_for(done.wait(), 30)
    del found["begun"]
    assert found == {
        "owned": [True],
        "unowned": [],
        "forced": {"a": "3"},
        "applied": "changed .data.a",
        "mine": [True],
        "nobody's": [],
        "condition": True,
        "ready": True,
        "messages": [("Painted", "Unknown", ""), ("Ready", "False", "")],
    }
    (event,) = [one for one in await world.client.list(Event) if one.reason == "Made"]
    assert (event.type, event.action) == ("Normal", "Made")


@pytest.mark.real_time(limit=60)
async def test_a_blocking_context_has_the_facts_of_its_reconcile() -> None:
    world, same = await filled_world(), list[bool]()
    done = asyncio.Event()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        blocking = BlockingContext(ctx, asyncio.get_running_loop())
        for name in ("key", "controller", "attempt", "last_error", "reconcile_id", "log", "client"):
            same.append(getattr(blocking, name) is getattr(ctx, name) or getattr(blocking, name) == getattr(ctx, name))
        done.set()

    async with operating(world, controller_for(Gadget).build(reconcile)):
        await asyncio.wait_for(done.wait(), 30)
    assert same[:7] == [True] * 7
