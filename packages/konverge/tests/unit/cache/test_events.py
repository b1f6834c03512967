"""Events: which ones a difference causes, what a subscription still has to report, and streams for slow readers."""

from __future__ import annotations

import asyncio

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry
from konverge.cache.events import Event, EventType, Subscription, change_events
from konverge.cache.streams import EventStream

A, B = at("a"), at("b")


def entry(name: str, version: int, uid: str = "") -> Entry:
    return Decoder(WIDGET).decode(widget(name, version, uid=uid))


OLD, NEW, OTHER = entry("a", 5), entry("a", 6), entry("a", 7, uid="second")


@pytest.mark.parametrize("listed", [False, True])
def test_each_difference_has_its_events(listed: bool) -> None:
    def events(old: Entry | None, new: Entry | None) -> tuple[Event, ...]:
        return change_events(old, new, listed=listed, writer="me")

    assert events(None, NEW) == (Event(EventType.ADDED, None, NEW, listed, "me"),)
    assert events(OLD, None) == (Event(EventType.DELETED, OLD, None, listed, "me"),)
    assert events(OLD, NEW) == (Event(EventType.UPDATED, OLD, NEW, listed, "me"),)
    assert events(OLD, OTHER) == (
        Event(EventType.DELETED, OLD, None, listed, None),
        Event(EventType.ADDED, None, OTHER, listed, "me"),
    )


def test_by_default_an_event_comes_from_a_watch_and_has_no_writer() -> None:
    assert change_events(None, NEW) == (Event(EventType.ADDED, None, NEW, False, None),)


def test_an_event_is_about_the_new_state_or_the_last_one() -> None:
    assert Event(EventType.UPDATED, OLD, NEW).entry is NEW
    deleted = Event(EventType.DELETED, OLD, None)
    assert (deleted.entry, deleted.key) == (OLD, A)


class Recorded:
    """A subscription and its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed: list[Subscription] = []
        self.subscription = Subscription(self.events.append, self.closed.append)

    def take(self) -> list[Event]:
        found = self.events.copy()
        self.events.clear()
        return found


def test_a_pending_difference_is_reported_before_a_change_of_the_same_object() -> None:
    it = Recorded()
    it.subscription.add_pending(A, None, OLD)
    it.subscription.add_pending(B, None, entry("b", 1))
    it.subscription.notify(A, OLD, NEW, "me")
    assert it.take() == [
        Event(EventType.ADDED, None, OLD, True, None),
        Event(EventType.UPDATED, OLD, NEW, False, "me"),
    ]
    assert not it.subscription.notify_pending(9)
    assert [event.key for event in it.take()] == [B]


def test_differences_of_two_lists_are_one() -> None:
    it = Recorded()
    it.subscription.add_pending(A, None, OLD)
    it.subscription.add_pending(A, OLD, NEW)
    it.subscription.notify_pending(9)
    assert it.take() == [Event(EventType.ADDED, None, NEW, True, None)]
    it.subscription.add_pending(A, NEW, OTHER)
    it.subscription.add_pending(A, OTHER, NEW)
    assert not it.subscription.notify_pending(9)
    assert it.take() == [], "the second list undid the first"


def test_pending_differences_are_reported_in_batches_of_the_given_size() -> None:
    it = Recorded()
    for number in range(5):
        it.subscription.add_pending(at(f"a-{number}"), None, entry(f"a-{number}", 1))
    it.subscription.notify(at("a-0"), entry("a-0", 1), None, None)
    it.take()
    assert it.subscription.notify_pending(2), "two are left"
    assert [event.key.name for event in it.take()] == ["a-1", "a-2"]
    assert not it.subscription.notify_pending(2)
    assert [event.key.name for event in it.take()] == ["a-3", "a-4"]
    assert not it.subscription.notify_pending(2)


def test_no_differences_are_reported_in_an_empty_batch() -> None:
    it = Recorded()
    it.subscription.add_pending(A, None, NEW)
    assert it.subscription.notify_pending(0)
    assert it.take() == []


def test_the_deletion_of_an_object_that_was_never_reported_counts_as_listed() -> None:
    it = Recorded()
    it.subscription.notify_deleted(OLD)
    assert it.take() == [Event(EventType.DELETED, OLD, None, True, None)]


def test_a_closed_subscription_has_nothing_pending_and_says_that_it_is_closed() -> None:
    it = Recorded()
    it.subscription.add_pending(A, None, NEW)
    it.subscription.close()
    assert not it.subscription.notify_pending(9)
    assert it.take() == []
    assert it.closed == [it.subscription]
    Subscription(it.events.append).close()


def test_what_was_reported_is_reported_as_deleted_at_the_end() -> None:
    it = Recorded()
    kept, fresh, changed, gone = (entry(name, 1) for name in ("kept", "fresh", "changed", "gone"))
    now = entry("changed", 2)
    it.subscription.add_pending(fresh.key, None, fresh)
    it.subscription.add_pending(changed.key, changed, now)
    it.subscription.add_pending(gone.key, gone, None)
    it.subscription.close_as_deleted([kept, fresh, now])
    assert it.take() == [Event(EventType.DELETED, one, None, True, None) for one in (kept, changed, gone)]
    assert it.closed == [it.subscription]


# Streams


async def all_of(stream: EventStream) -> list[Event]:
    """Return the events until the reader would have to wait."""
    found = []
    while stream._ready or stream._pending:
        found.append(await anext(stream))
    return found


async def test_a_stream_has_events_in_order_with_all_they_say() -> None:
    stream = EventStream()
    events = [
        Event(EventType.ADDED, None, NEW, True, None),
        Event(EventType.DELETED, entry("b", 3), None, False, "me"),
    ]
    for event in events:
        stream.notify(event)
    assert await all_of(stream) == events


async def test_unread_changes_of_an_object_are_one_without_a_writer_after_those_of_others() -> None:
    stream = EventStream()
    stream.notify(Event(EventType.ADDED, None, OLD, True, "me"))
    stream.notify(Event(EventType.ADDED, None, entry("b", 1), False, "me"))
    stream.notify(Event(EventType.UPDATED, OLD, NEW, False, "me"))
    assert await all_of(stream) == [
        Event(EventType.ADDED, None, entry("b", 1), False, "me"),
        Event(EventType.ADDED, None, NEW, False, None),
    ]


async def test_another_object_of_the_same_name_is_two_events_of_a_stream() -> None:
    stream = EventStream()
    stream.notify(Event(EventType.DELETED, OLD, None, False, "me"))
    stream.notify(Event(EventType.ADDED, None, OTHER, True, "me"))
    assert await all_of(stream) == [
        Event(EventType.DELETED, OLD, None, True, None),
        Event(EventType.ADDED, None, OTHER, True, None),
    ]


async def test_an_object_that_came_and_went_unread_is_no_event() -> None:
    stream = EventStream()
    stream.notify(Event(EventType.ADDED, None, NEW))
    stream.notify(Event(EventType.DELETED, NEW, None))
    assert await all_of(stream) == []


async def test_a_waiting_reader_continues_with_the_next_event_and_ends_with_the_stream() -> None:
    stream, closed = EventStream(), list[str]()
    stream.on_close(lambda: closed.append("closed"))

    async def read() -> list[Event]:
        return [event async for event in stream]

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        await asyncio.sleep(1)
        stream.notify(Event(EventType.ADDED, None, NEW))
        await asyncio.sleep(1)
        assert closed == []
        await stream.aclose()
    assert [event.new for event in reading.result()] == [NEW]
    assert closed == ["closed"]


async def test_a_closed_stream_forgets_what_is_unread() -> None:
    stream = EventStream()
    stream.notify(Event(EventType.ADDED, None, NEW))
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert not stream._pending
