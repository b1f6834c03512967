"""The guided tour: one object, once round the loop, station by station.

Read it from top to bottom; each station is a few lines, and everything is done by hand that a manager does by itself.
The last test lets a manager do it.
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
from konverge.triggers import TriggerHandler, Trigger, spec_or_metadata_changed, to_self
from konverge.wire.frames import FrameReader
from konverge.wire.list_watch import ListWatchState, Put, Synced, Watch

KEY = Key("default", "lamp")


async def test_one_object_once_round_the_loop_by_hand() -> None:
    world = await world_with_gadgets()
    kind = kind_of(Gadget)

    # 1. The world changes: somebody creates an object. The server answers a watch with bytes.
    await world.client.create(gadget("lamp", text="bright"))
    list_watch = ListWatchState(kind="Gadget")
    question = list_watch.next_request(timeout=5)
    assert isinstance(question, Watch)
    collection = world.client.collection(kind)

    # 2. Bytes become frames, frames become changes. The machine `ListWatchState` decides; it does no I/O of its own.
    reader, changes = FrameReader(), []
    async with await collection.watch(question.options) as response:
        list_watch.handle_open()
        async for chunk in response.chunks():
            changes += [list_watch.handle_frame(frame) for frame in reader.feed(chunk)]
            if any(isinstance(change, Synced) for change in changes):
                break
    (put,) = [change for change in changes if isinstance(change, Put)]

    # 3. Changes go into the store, which tells its subscribers in the same step. It keeps the bytes as they came.
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

    # 4. A predicate says whether the change matters, a mapper whom it concerns: plain functions, no waiting.
    mine = Trigger(name="for Gadget", kind=Gadget, predicate=spec_or_metadata_changed, mapper=to_self(), primary=True)
    ((key, wake, priority, reset_backoff),) = TriggerHandler(mine, controller="gadget").handle(event)
    assert (key, wake.what, reset_backoff) == (KEY, "added", True)

    # 5. The key goes into the queue. However often it is added, it is in line once.
    queue: WorkQueue[Key] = WorkQueue("gadget")
    for _ in range(3):
        queue.add(key, priority=priority, reset_backoff=reset_backoff)
    assert queue.stats().ready == 1

    # 6. A worker takes it and reads the object as it is *now*, typed, and its own copy.
    taken = await queue.get()
    entry = store.get(taken)
    assert entry is not None
    lamp = entry.read(Gadget)
    assert lamp.spec.text == "bright"

    # 7. The author's part: say what should be. Apply makes it so, and the owner is written into the child.
    async with Cache(world.client.collection, server=world.client) as cache:
        cache.declare(ConfigMap, CacheOptions(manager="gadget-operator"))
        await cache.wait_for_sync(timeout=10)
        applier = Applier(world.client, cache, field_manager="gadget-operator")
        wanted = ConfigMap(metadata=ObjectMeta(name="lamp"), data={"text": lamp.spec.text})
        child = await applier.apply(wanted, owner=lamp)
    assert [owner.uid for owner in child.metadata.owner_references or []] == [lamp.uid]

    # 8. The key is given back. Nothing is left to do until the world changes again: that is the loop.
    queue.forget(taken)
    queue.done(taken)
    assert queue.stats().ready == queue.stats().running == 0


async def test_the_same_by_a_manager() -> None:
    world = await world_with_gadgets()

    async def reconcile(lamp: Gadget, ctx: Context) -> Result:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=lamp.name), data={"text": lamp.spec.text}))
        return Result.done()

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)) as manager:
        await world.client.create(gadget("lamp", text="bright"))
        await settle()
        assert (await world.client.get(ConfigMap, "lamp")).data == {"text": "bright"}

        # Somebody dims it by hand; the operator puts it back, and can say why it ran.
        await world.client.patch(ConfigMap, "lamp", {"data": {"text": "dim"}})
        await settle()
        assert (await world.client.get(ConfigMap, "lamp")).data == {"text": "bright"}
        last, *_ = manager.why("gadget", KEY)
        assert last["enqueued_by"][0]["trigger"] == "owns ConfigMap"
