"""Running controllers: what enqueues a key, what happens to it, and what a reconciler may rely on."""

from __future__ import annotations

import asyncio
import threading
from itertools import groupby
from typing import Any

import pytest

from delayed_watches import DelayedWatches
from gadgets import Gadget, GadgetSpec, GadgetStatus, gadget, operating, world_with_gadgets
from konverge import (
    Client,
    Context,
    CustomResource,
    Key,
    ObjectMeta,
    Reconciler,
    Result,
    TerminalError,
    Unstructured,
    controller_for,
    crd_for,
)
from konverge.client import InProcessTransport
from konverge.errors import NotFound
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.queue import Backoff
from konverge.reconcile import BlockingContext
from konverge.testing import settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import End, Fault, RecordedRequest, status_response
from konverge.triggers import Channel, to_keys

STEADY = Backoff(jitter=0.0)


def now() -> float:
    return asyncio.get_running_loop().time()


def part_of(owner: Gadget, number: int) -> ConfigMap:
    name = f"{owner.name}-{number}"
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=owner.namespace), data={"text": owner.spec.text})


class Parts(Reconciler[Gadget]):
    """Makes as many ConfigMaps as a gadget's size says."""

    def __init__(self) -> None:
        self.runs: list[Key] = []

    async def reconcile(self, obj: Gadget, ctx: Context) -> Result | None:
        self.runs.append(obj.key)
        for number in range(obj.spec.size):
            await ctx.apply(part_of(obj, number))
        await ctx.prune(ConfigMap)
        obj.status.parts = len(ctx.owned(ConfigMap))
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)
        return None


async def parts_on(client: Client) -> list[str]:
    return sorted(one.name for one in await client.list(ConfigMap, namespace="default"))


async def test_existing_and_new_objects_are_reconciled() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=2))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Parts())):
        await settle()
        await world.client.create(gadget("b"))
        await settle()

        assert await parts_on(world.client) == ["a-0", "a-1", "b-0"]
        made = await world.client.get(Gadget, "a")
        assert (made.status.parts, made.status.observed_generation) == (2, 1)
        child = await world.client.get(ConfigMap, "a-0")
        assert [owner.uid for owner in child.metadata.owner_references or []] == [made.uid]


async def test_a_smaller_set_is_pruned_and_objects_of_others_are_kept() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=3))
    await world.client.create(ConfigMap(metadata=ObjectMeta(name="a-9", namespace="default")))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Parts())):
        await settle()
        smaller = await world.client.get(Gadget, "a")
        smaller.spec.size = 1
        await world.client.update(smaller)
        await settle()

        assert await parts_on(world.client) == ["a-0", "a-9"]


async def test_a_converged_object_causes_no_write_also_after_a_restart() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=2))
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Parts())):
        await settle()
    world.forget_writes()

    parts = Parts()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(parts)):
        await settle()

    assert parts.runs == [Key("default", "a")]
    assert world.writes == []


async def test_an_own_write_enqueues_at_most_once_and_that_reconcile_writes_nothing() -> None:
    world = await world_with_gadgets()
    parts = Parts()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(parts)):
        await settle()
        await world.client.create(gadget("a", size=3))
        await settle()

    assert len(parts.runs) <= 2
    assert len([write for write in world.writes if "configmaps" in write]) == 3
    assert len([write for write in world.writes if "status" in write]) == 1


async def test_a_child_that_is_deleted_or_edited_by_hand_is_restored() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=2, text="good"))
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Parts())):
        await settle()
        await world.client.delete(ConfigMap, "a-0")
        await world.client.patch(ConfigMap, "a-1", {"data": {"text": "bad"}})
        await settle()

        assert await parts_on(world.client) == ["a-0", "a-1"]
        assert (await world.client.get(ConfigMap, "a-1")).data == {"text": "good"}


async def test_a_failing_key_backs_off_and_affects_no_other() -> None:
    world = await world_with_gadgets()
    times: dict[str, list[float]] = {"bad": [], "good": []}

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        times[obj.name].append(now())
        if obj.name == "bad":
            assert ctx.attempt == len(times["bad"])
            assert ctx.last_error == ("" if ctx.attempt == 1 else "it is bad")
            raise RuntimeError("it is bad")

    for name in times:
        await world.client.create(gadget(name))
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        await asyncio.sleep(20)

    begin = times["bad"][0]
    assert [round(at - begin, 3) for at in times["bad"]] == [0, 1, 3, 7, 15]
    assert len(times["good"]) == 1


async def test_a_terminal_error_is_retried_when_the_object_changes() -> None:
    world = await world_with_gadgets()
    runs: list[int] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.spec.size)
        raise TerminalError("never")

    made = await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        await asyncio.sleep(3600)
        made.spec.size = 2
        await world.client.update(made)
        await asyncio.sleep(3600)

    assert runs == [1, 2]


async def test_a_conflict_is_retried_at_once() -> None:
    world = await world_with_gadgets()
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        obj.status.parts = 7
        if len(runs) == 1:
            await world.client.patch(Gadget, obj.key, {"metadata": {"labels": {"by": "hand"}}})
        await ctx.update_status(obj)

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
        assert (await world.client.get(Gadget, "a")).status.parts == 7
    assert runs[0] == runs[1]


async def test_repeated_conflicts_back_off() -> None:
    world = await world_with_gadgets()
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        obj.status.parts = len(runs)
        await ctx.update_status(obj)

    await world.client.create(gadget("a"))
    world.transport.script.add(lambda asked: asked.method == "PATCH", status_response(409, reason="Conflict"), times=5)
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        await asyncio.sleep(10)

    begin = runs[0]
    assert [round(at - begin, 3) for at in runs] == [0, 0, 0.1, 0.6, 1.6, 1.6]


async def test_retries_of_a_conflict_wait_for_the_event_of_the_other_write() -> None:
    world = await world_with_gadgets()
    world.transport = FaultTransport(DelayedWatches(InProcessTransport(world.server.handle), "gadgets", by=0.3))
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        obj.status.parts = 7
        if len(runs) == 1:
            await world.client.patch(Gadget, obj.key, {"metadata": {"labels": {"by": "hand"}}})
        await ctx.update_status(obj)

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        await asyncio.sleep(10)
        assert (await world.client.get(Gadget, "a")).status.parts == 7

    assert [round(at - runs[0], 3) for at in runs[:4]] == [0, 0, 0.1, 0.3], "sooner than after an error"


async def test_a_reconcile_that_hangs_is_cancelled_at_its_deadline_and_others_continue() -> None:
    world = await world_with_gadgets()
    cancelled: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if obj.name == "hangs":
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(now())

    await world.client.create(gadget("hangs"))
    await world.client.create(gadget("fine"))
    controller = controller_for(Gadget).timeout(5).max_concurrent_reconciles(1).backoff(STEADY).build(reconcile)
    async with operating(world, controller) as manager:
        await asyncio.sleep(5.5)
        (run,) = manager.why("gadget", Key("default", "hangs"))
        assert "not done after 5 s" in run["error"]
        assert manager.why("gadget", Key("default", "fine"))[0]["result"] == "done"
    assert round(cancelled[0]) == 5


async def test_requeue_after_some_seconds() -> None:
    world = await world_with_gadgets()
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(now())
        return Result.requeue(after=30, reason="look again")

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        await asyncio.sleep(100)

    assert [round(at - runs[0]) for at in runs] == [0, 30, 60, 90]


class Ledger(Reconciler[Gadget]):
    """Keeps entries outside of the cluster, and must remove them before the object is gone."""

    finalizer = "test.konverge.dev/ledger"

    def __init__(self, steps: int = 1) -> None:
        self.entries: list[str] = []
        self.gone_keys: list[Key] = []
        self._steps = steps

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        assert self.finalizer in (obj.metadata.finalizers or [])
        self.entries.append(f"added {obj.name}")

    async def finalize(self, obj: Gadget, ctx: Context) -> Result:
        self._steps -= 1
        if self._steps > 0:
            return Result.requeue(after=5, reason="not yet")
        self.entries.append(f"removed {obj.name}")
        return Result.done()

    def gone(self, key: Key) -> None:
        self.gone_keys.append(key)


async def test_the_finalizer_is_added_before_the_first_side_effect_and_removed_after_the_last() -> None:
    world = await world_with_gadgets()
    ledger = Ledger(steps=3)
    made = gadget("a")
    made.metadata.finalizers = ["other.example.com/finalizer"]
    await world.client.create(made)

    async with operating(world, controller_for(Gadget).build(ledger)):
        await settle()
        await world.client.delete(Gadget, "a")
        await settle()
        left = await world.client.get(Gadget, "a")
        assert left.metadata.finalizers == ["other.example.com/finalizer", Ledger.finalizer]

        await asyncio.sleep(11)
        assert (await world.client.get(Gadget, "a")).metadata.finalizers == ["other.example.com/finalizer"]

        await world.client.patch(Gadget, "a", {"metadata": {"finalizers": []}})
        await settle()
        with pytest.raises(NotFound):
            await world.client.get(Gadget, "a")
    assert [entry for entry, _ in groupby(ledger.entries)] == ["added a", "removed a"]
    assert ledger.gone_keys == [Key("default", "a")]


async def test_an_object_is_kept_while_its_finalizer_fails() -> None:
    world = await world_with_gadgets()
    tries: list[float] = []

    class FailingLedger(Ledger):
        async def finalize(self, obj: Gadget, ctx: Context) -> Result:
            tries.append(now())
            if len(tries) < 3:
                raise RuntimeError("the ledger is closed")
            return Result.done()

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(FailingLedger())):
        await settle()
        await world.client.delete(Gadget, "a")
        await asyncio.sleep(2)
        assert (await world.client.get(Gadget, "a")).metadata.finalizers == [Ledger.finalizer]
        await asyncio.sleep(2)
        with pytest.raises(NotFound):
            await world.client.get(Gadget, "a")
    assert [round(at - tries[0]) for at in tries] == [0, 1, 3]


async def test_an_object_that_is_being_deleted_is_not_reconciled_without_a_finalizer_of_the_controller() -> None:
    world = await world_with_gadgets()
    parts = Parts()
    made = gadget("a", size=1)
    made.metadata.finalizers = ["other.example.com/finalizer"]
    await world.client.create(made)
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(parts)):
        await settle()
        await world.client.delete(Gadget, "a")
        await world.client.delete(ConfigMap, "a-0")
        await settle()

        assert await parts_on(world.client) == []


async def test_a_kind_that_is_not_installed_yet_delays_no_other_controller() -> None:
    world = await world_with_gadgets()

    class Late(CustomResource[GadgetSpec, GadgetStatus], group="late.konverge.dev", version="v1"):
        """A kind that is installed later."""

    runs: list[str] = []

    async def reconcile(obj: Any, ctx: Context) -> None:
        runs.append(f"{obj.kind} {obj.name}")

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile), controller_for(Late).build(reconcile)):
        await asyncio.sleep(1)
        assert runs == ["Gadget a"]

        await world.client.create(crd_for(Late))
        late = Late(spec=GadgetSpec(), metadata=ObjectMeta(name="b", namespace="default"))
        await world.client.create(late)
        await asyncio.sleep(60)
    assert runs == ["Gadget a", "Late b"]


async def test_a_watched_object_enqueues_the_keys_that_its_mapper_recounts_for_the_old_and_the_new_state() -> None:
    world = await world_with_gadgets()
    runs: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)

    def gadgets_of(secret: Secret) -> list[Key]:
        return [Key("default", name) for name in (secret.metadata.labels or {}).get("for", "").split(".") if name]

    for name in ("a", "b", "c"):
        await world.client.create(gadget(name))
    secret = Secret(metadata=ObjectMeta(name="s", namespace="default", labels={"for": "a.b"}))
    controller = controller_for(Gadget).watches(Secret, to_keys(gadgets_of, Secret)).build(reconcile)
    async with operating(world, controller):
        await settle()
        runs.clear()
        secret = await world.client.create(secret)
        await settle()
        assert sorted(runs) == ["a", "b"]

        runs.clear()
        secret.metadata.labels = {"for": "b.c"}
        await world.client.update(secret)
        await settle()
        assert sorted(runs) == ["a", "b", "c"]


async def test_channels_and_timers_enqueue_too() -> None:
    world = await world_with_gadgets()
    channel = Channel()
    runs: list[tuple[str, float]] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append((obj.name, round(now())))

    await world.client.create(gadget("a"))
    await world.client.create(gadget("b"))
    controller = controller_for(Gadget).channel(channel).every(100, lambda: [Key("default", "b")]).build(reconcile)
    async with operating(world, controller):
        await asyncio.sleep(10)
        channel.put(Key("default", "a"))
        await asyncio.sleep(145)

    assert sorted(runs) == [("a", 0), ("a", 10), ("b", 0), ("b", 100)]


async def test_a_function_that_is_not_async_runs_in_a_thread() -> None:
    world = await world_with_gadgets()

    def reconcile(obj: Gadget, ctx: BlockingContext) -> Result:
        ctx.apply(part_of(obj, 0))
        obj.status.parts = len(ctx.owned(ConfigMap))
        ctx.update_status(obj)
        return Result.done()

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        await settle()
        assert (await world.client.get(Gadget, "a")).status.parts == 1


async def test_an_undecodable_object_gets_a_condition_and_affects_no_other() -> None:
    world = await world_with_gadgets()
    loose = crd_for(Gadget)
    await world.client.patch(
        "crd",
        loose.name,
        [
            {
                "op": "replace",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
                "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        ],
        patch_type="json",
    )
    raw = {"apiVersion": "test.konverge.dev/v1", "kind": "Gadget", "metadata": {"name": "bad", "namespace": "default"}}
    await world.client.create(Unstructured({**raw, "spec": {"size": "large"}}))
    await world.client.create(gadget("good", size=1))
    parts = Parts()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(parts)):
        await asyncio.sleep(10)
        assert await parts_on(world.client) == ["good-0"]
        bad = await world.client.get("gadgets.test.konverge.dev", "bad")
        (condition,) = bad["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Readable", "False")
        assert ".spec.size" in condition["message"]

        await world.client.patch("gadgets.test.konverge.dev", "bad", {"spec": {"size": 2}})
        await settle()
        assert await parts_on(world.client) == ["bad-0", "bad-1", "good-0"]


async def test_a_wrong_return_value_of_a_reconciler_is_a_terminal_error() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> Any:
        return 30

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)) as manager:
        await settle()
        (run,) = manager.why("gadget", Key("default", "a"))
        assert "return Result.done(), Result.requeue(after=30) or None" in run["error"]


def test_misuse_of_the_builder_raises_at_once() -> None:
    class NoFinalizer(Reconciler[Gadget]):
        async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...
        async def finalize(self, obj: Gadget, ctx: Context) -> None: ...

    with pytest.raises(TypeError, match="has finalize but no finalizer"):
        controller_for(Gadget).build(NoFinalizer())
    with pytest.raises(TypeError, match="an instance of a Reconciler class"):
        controller_for(Gadget).build(NoFinalizer)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        controller_for(Gadget).max_concurrent_reconciles(0)
    with pytest.raises(TypeError, match="has no kind"):
        controller_for(str)  # type: ignore[type-var]


async def test_a_thousand_keys_and_one_poison_key() -> None:
    world = await world_with_gadgets()
    done: set[str] = set()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if obj.name == "g-500":
            raise RuntimeError("poison")
        done.add(obj.name)

    for number in range(1_000):
        await world.client.create(gadget(f"g-{number}"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        await settle()
        assert len(done) == 999


async def test_reconciles_that_never_wait_do_not_block_the_event_loop() -> None:
    world = await world_with_gadgets()
    for number in range(30):
        await world.client.create(gadget(f"g-{number}"))
    others: list[int] = []
    counts: list[int] = []
    done = asyncio.Event()

    async def other() -> None:
        while True:
            others.append(1)
            await asyncio.sleep(0)

    async def look(obj: Gadget, ctx: Context) -> None:
        counts.append(len(others))
        if len(counts) == 30:
            done.set()

    async with asyncio.TaskGroup() as group:
        beside = group.create_task(other())
        async with operating(world, controller_for(Gadget).max_concurrent_reconciles(1).build(look)):
            await done.wait()
        beside.cancel()

    assert len(set(counts)) == 30, "another task ran between any two reconciles"


class NotAnException(BaseException):
    """An error that is not an Exception."""


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), NotAnException(), StopAsyncIteration()])
async def test_every_error_of_a_reconciler_affects_only_its_key(error: BaseException) -> None:
    world = await world_with_gadgets()
    done: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if obj.name.startswith("bad"):
            raise error
        done.append(obj.name)

    for number in range(3):
        await world.client.create(gadget(f"bad-{number}"))
    async with operating(world, controller_for(Gadget).max_concurrent_reconciles(2).build(reconcile)) as manager:
        await asyncio.sleep(10)
        await world.client.create(gadget("good"))
        await settle()
        assert done == ["good"]
        assert manager.why("gadget", Key("default", "bad-0"))[0]["attempt"] > 1


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3), RuntimeError()])
async def test_every_error_of_a_plain_function_affects_only_its_key(error: BaseException) -> None:
    world = await world_with_gadgets()
    done: list[str] = []

    def reconcile(obj: Gadget, ctx: BlockingContext) -> None:
        if obj.name == "bad":
            raise error
        done.append(obj.name)

    await world.client.create(gadget("bad"))
    async with operating(world, controller_for(Gadget).max_concurrent_reconciles(1).timeout(5).build(reconcile)):
        await asyncio.sleep(10)
        await world.client.create(gadget("good"))
        await settle()
    assert done == ["good"]


@pytest.mark.real_time(limit=60)
async def test_plain_functions_that_hang_block_neither_other_controllers_nor_the_shutdown() -> None:
    world = await world_with_gadgets()
    free, made = threading.Event(), asyncio.Event()
    begun = threading.Barrier(9)

    def hang(obj: Gadget, ctx: BlockingContext) -> None:
        begun.wait(60)
        free.wait(60)

    async def see(obj: ConfigMap, ctx: Context) -> None:
        made.set()

    for number in range(8):
        await world.client.create(gadget(f"g-{number}"))
    hanging = controller_for(Gadget).timeout(0.2).build(hang)
    try:
        async with operating(world, hanging, controller_for(ConfigMap).build(see), grace=0.2):
            await asyncio.to_thread(begun.wait, 60)
            await world.client.create(ConfigMap(metadata=ObjectMeta(name="m", namespace="default")))
            await asyncio.wait_for(made.wait(), 20)
            began = now()
        assert now() - began < 20
    finally:
        free.set()


async def test_two_owners_of_the_same_child_do_not_fight_for_it() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="shared"), data={"by": obj.name}))

    for name in ("a", "b"):
        await world.client.create(gadget(name))
    controller = controller_for(Gadget).owns(ConfigMap).max_concurrent_reconciles(1).backoff(STEADY).build(reconcile)
    async with operating(world, controller) as manager:
        await asyncio.sleep(60)
        shared = await world.client.get(ConfigMap, "shared")
        loser = "b" if shared.data == {"by": "a"} else "a"
        assert len([write for write in world.writes if "configmaps" in write]) == 1
        assert (
            f"its controller is Gadget {shared.data and shared.data['by']}"
            in manager.why("gadget", Key("default", loser))[0]["error"]
        )


async def test_watches_that_never_stay_open_block_no_controller() -> None:
    world, runs = await world_with_gadgets(), []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.spec.size)

    def opens(asked: RecordedRequest) -> bool:
        return asked.watches and "sendInitialEvents" not in asked.query

    await world.client.create(gadget("a", size=3))
    with (
        world.transport.script.active(lambda asked: "sendInitialEvents" in asked.query, status_response(400)),
        world.transport.script.active(opens, Fault(keep=0, end=End.CLEAN)),
    ):
        async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
            await asyncio.sleep(300)
    assert runs == [3]
