"""Objects known only from own writes that are gone before a watch or a list delivers them."""

from __future__ import annotations

from typing import Any

import pytest

from cached_objects import WIDGET, at, deleted, widget
from konverge.cache.events import Event
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store

GONE: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


async def relist(store: Store, *widgets: bytes, version: int) -> None:
    store.begin()
    for one in widgets:
        store.put(one)
    await store.swap(str(version))


async def listed(*widgets: bytes, **options: str) -> tuple[Store, list[Event]]:
    """Return a store after its first list, and the events from then on."""
    store = Store(WIDGET, options=CacheOptions(**options))  # type: ignore[arg-type]
    await relist(store, *widgets, version=10)
    events: list[Event] = []
    store.subscribe(events.append, at_once=True)
    events.clear()
    return store, events


def reported(events: list[Event]) -> list[tuple[str, str, bool]]:
    return [(event.type, event.entry.uid, event.listed) for event in events]


async def test_an_own_object_missing_from_a_list_is_reported_as_deleted() -> None:
    store, events = await listed()
    store.record_write(widget("a", 11), created=True, writer="us")

    await relist(store, version=20)

    assert reported(events) == [("deleted", "uid-a", True)]
    assert events[0].writer is None
    assert store.get(at("a")) is None


async def test_it_is_reported_before_another_object_of_the_same_name() -> None:
    store, events = await listed(widget("a", 5, uid="first"))
    store.record_write(widget("a", 11, uid="ours"), created=True, writer="us")

    await relist(store, widget("a", 15, uid="third"), version=20)

    assert reported(events) == [("deleted", "ours", True), ("deleted", "first", True), ("added", "third", True)]


async def test_a_response_after_the_list_reports_the_deletion() -> None:
    store, events = await listed()
    await relist(store, version=20)

    store.record_write(widget("a", 11), created=True, writer="us")

    assert reported(events) == [("deleted", "uid-a", True)]
    assert store.get(at("a")) is None


async def test_an_object_in_the_list_or_newer_than_it_is_not_reported() -> None:
    store, events = await listed(widget("b", 6), widget("c", 7))
    store.record_write(widget("a", 11), created=True, writer="us")
    store.record_write(widget("b", 12), base_version="6", writer="us")
    store.record_write(widget("late", 30), created=True, writer="us")

    await relist(store, widget("a", 11), widget("b", 13), widget("c", 7), version=20)
    store.record_write(widget("c", 7), writer="us")

    assert reported(events) == [("added", "uid-a", True), ("updated", "uid-b", True)]
    assert store.get(at("late")) is not None


@pytest.mark.parametrize("answer", [deleted("uid-a"), widget("a", 12, **GONE)])
async def test_an_object_created_and_deleted_by_this_process_is_reported_too(answer: bytes) -> None:
    """Other controllers of this process have seen it meanwhile."""
    store, events = await listed()
    store.record_write(widget("a", 11), created=True, writer="us")
    store.record_delete(at("a"), answer, version="11", writer="us")

    await relist(store, version=20)

    assert reported(events) == [("deleted", "uid-a", True)]


async def test_a_deletion_delivered_by_the_watch_is_not_reported_again_by_a_late_response() -> None:
    store, events = await listed()
    store.put(widget("a", 11))
    store.remove(widget("a", 12))

    store.record_write(widget("a", 11), created=True, writer="us")

    assert reported(events) == [("added", "uid-a", False), ("deleted", "uid-a", False)]


@pytest.mark.parametrize("late", [False, True])
async def test_an_object_outside_of_the_selector_is_not_reported(late: bool) -> None:
    store, events = await listed(labels="app=web")
    if late:
        await relist(store, version=20)
    store.record_write(widget("a", 11, labels={"app": "db"}), created=True, writer="us")

    await relist(store, version=30)

    assert reported(events) == []
