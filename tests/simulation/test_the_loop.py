"""A guided tour: one object goes through the reconcile loop, step by step.

Read it from top to bottom. Each step is a few lines, and does by hand what a manager does by itself. The last test lets
a manager do it.
"""

from __future__ import annotations

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, ObjectMeta, Result, controller_for
from konverge.cache import Cache, CacheOptions, Event, Store
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import kind_of
from konverge.queue import WorkQueue
from konverge.reconcile import Applier
from konverge.testing import settle
from konverge.triggers import Trigger, TriggerHandler, spec_or_metadata_changed, to_self
from konverge.wire.frames import FrameReader
from konverge.wire.list_watch import ListWatchState, Put, Synced, Watch

KEY = Key("default", "lamp")


async def test_one_object_goes_through_each_step_of_the_loop() -> None:
    world = await world_with_gadgets()
    kind = kind_of(Gadget)

    # 1. A user creates an object. The server responds to a watch with bytes.
    await world.client.create(gadget("lamp", text="bright"))
    list_watch = ListWatchState(kind="Gadget")
    request = list_watch.next_request(timeout=5)
    assert isinstance(request, Watch)
    collection = world.client.collection(kind)

    # 2. Bytes become frames, and frames become changes. `ListWatchState` decides; it does no I/O.
    reader, changes = FrameReader(), []
    async with await collection.watch(request.options) as response:
        list_watch.handle_open()
        async for chunk in response.chunks():
            changes += [list_watch.handle_frame(frame) for frame in reader.feed(chunk)]
            if any(isinstance(change, Synced) for change in changes):
                break
    (put,) = [change for change in changes if isinstance(change, Put)]

    # 3. Changes go into the store, which notifies its subscribers in the same step. It stores the bytes unchanged.
    events: list[Event] = []
    store = Store(kind, options=CacheOptions())
    store.subscribe(events.append)
    store.begin()
    store.put(put.raw)
    await store.swap(list_watch.resource_version)
    while store.notify_pending():
        pass
    (event,) = events
    assert event.key == KEY

    # 4. A predicate decides whether the change matters, and a mapper which keys to enqueue: plain functions, no await.
    trigger = Trigger(
        name="for Gadget", kind=Gadget, predicate=spec_or_metadata_changed, mapper=to_self(), primary=True
    )
    ((key, reason, priority, reset_backoff, _),) = TriggerHandler(trigger, controller="gadget").handle(event)
    assert (key, reason.what, reset_backoff) == (KEY, "added", True)

    # 5. The key goes into the queue. However often it is added, it is queued once.
    queue: WorkQueue[Key] = WorkQueue("gadget")
    for _ in range(3):
        queue.add(key, priority=priority, reset_backoff=reset_backoff)
    assert queue.stats().ready == 1

    # 6. A worker gets the key and reads the *current* object: typed, and its own copy.
    next_key = await queue.get()
    entry = store.get(next_key)
    assert entry is not None
    lamp = entry.read(Gadget)
    assert lamp.spec.text == "bright"

    # 7. The reconciler: apply the desired objects. Apply also writes the owner reference of the child.
    async with Cache(world.client.collection, server=world.client) as cache:
        cache.declare(ConfigMap, CacheOptions(manager="gadget-operator"))
        await cache.wait_for_sync(timeout=10)
        applier = Applier(world.client, cache, field_manager="gadget-operator")
        desired = ConfigMap(metadata=ObjectMeta(name="lamp"), data={"text": lamp.spec.text})
        child = await applier.apply(desired, owner=lamp)
    assert [owner.uid for owner in child.metadata.owner_references or []] == [lamp.uid]

    # 8. The key is done. Nothing is left to do until the next change.
    queue.forget(next_key)
    queue.done(next_key)
    assert queue.stats().ready == queue.stats().in_flight == 0


async def test_a_manager_runs_the_same_loop() -> None:
    world = await world_with_gadgets()

    async def reconcile(lamp: Gadget, ctx: Context) -> Result:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=lamp.name), data={"text": lamp.spec.text}))
        return Result.done()

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)) as manager:
        await world.client.create(gadget("lamp", text="bright"))
        await settle()
        assert (await world.client.get(ConfigMap, "lamp")).data == {"text": "bright"}

        # A user changes the child by hand. The operator reverts it, and reports why it ran.
        await world.client.patch(ConfigMap, "lamp", {"data": {"text": "dim"}})
        await settle()
        assert (await world.client.get(ConfigMap, "lamp")).data == {"text": "bright"}
        last, *_ = manager.why("gadget", KEY)
        assert last["enqueued_by"][0]["trigger"] == "owns ConfigMap"
