"""The rules of the store, one by one; `test_cache_model` tries them all together."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from cached_objects import WIDGET, at, deleted, listed, relist, widget
from konverge.cache.events import Event, EventType, Subscription
from konverge.cache.indexes import by_path
from konverge.cache.store import Store
from konverge.errors import DecodeError, Expired
from konverge.objects import Unstructured

GONE: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


def record_events(store: Store) -> list[Event]:
    events: list[Event] = []
    store.subscribe(events.append, at_once=True)
    events.clear()
    return events


def shape(events: list[Event]) -> list[tuple[str, str, object, object]]:
    return [(e.type, e.key.name, e.old and e.old.version, e.new and e.new.version) for e in events]


# Versions


async def test_a_list_is_staged_and_becomes_visible_at_once() -> None:
    store = Store(WIDGET)
    store.begin()
    store.put(widget("a", 1))
    assert store.get(at("a")) is None
    assert store.version == ""

    await store.swap("10")
    assert store.get(at("a")) is not None
    assert store.version == "10"


async def test_a_restarted_list_discards_what_was_staged() -> None:
    store = Store(WIDGET)
    store.begin()
    store.put(widget("a", 1))
    await relist(store, widget("b", 2), version=10)
    assert [entry.key.name for entry in store.list()] == ["b"]


async def test_a_removal_during_a_list_removes_the_staged_object() -> None:
    store = Store(WIDGET)
    store.begin()
    store.put(widget("a", 1))
    store.remove(widget("a", 2))
    store.remove(widget("unknown", 3))
    await store.swap("10")
    assert store.list() == []


async def test_indexes_follow_every_list_and_own_writes_in_between() -> None:
    store = Store(WIDGET)
    store.add_index("size", by_path(".spec.size"))

    def found(size: int) -> list[str]:
        return sorted(entry.key.name for entry in store.find("size", size))

    await relist(store, widget("a", 1, spec={"size": 1}), widget("b", 2, spec={"size": 1}), version=10)
    assert (found(1), found(2)) == (["a", "b"], [])
    store.record_write(widget("c", 11, spec={"size": 2}), created=True)
    assert found(2) == ["c"]
    await relist(store, widget("a", 12, spec={"size": 2}), widget("d", 13, spec={"size": 1}), version=14)
    assert (found(1), found(2)) == (["d"], ["a"])
    await relist(store, version=20)
    assert (found(1), found(2)) == ([], [])
    await relist(store, widget("a", 21, spec={"size": 1}), version=30)
    assert (found(1), found(2)) == (["a"], [])


async def test_an_older_state_of_an_object_is_ignored() -> None:
    store = await listed(widget("a", 8))
    events = record_events(store)
    store.put(widget("a", 5))
    store.put(widget("a", 8))
    assert store.get(at("a")).version == 8  # type: ignore[union-attr]
    assert events == []


async def test_a_stale_state_does_not_restore_a_deleted_object() -> None:
    store = await listed(widget("a", 8))
    store.remove(widget("a", 12))
    store.put(widget("a", 9))
    store.remove(widget("a", 12))
    assert store.get(at("a")) is None


async def test_two_new_objects_in_swapped_order_are_both_delivered() -> None:
    store = await listed(widget("a", 8), version=10)
    events = record_events(store)
    store.put(widget("c", 12))
    store.put(widget("b", 11))
    assert sorted(entry.key.name for entry in store.list()) == ["a", "b", "c"]
    assert [event.key.name for event in events] == ["c", "b"]


async def test_a_state_at_the_version_of_its_removal_leaves_no_ghost() -> None:
    store = await listed(widget("a", 8), version=10)
    events = record_events(store)
    store.remove(widget("a", 12))
    store.put(widget("a", 12))
    store.remove(widget("unknown", 14))
    store.put(widget("unknown", 13))
    assert store.list() == []
    assert [event.type for event in events] == ["deleted"]


async def test_what_a_list_or_a_bookmark_does_not_show_is_gone() -> None:
    store = await listed(widget("a", 8), version=10)
    store.put(widget("b", 9))
    store.progress("20")
    store.put(widget("c", 15))
    store.put(widget("d", 20))
    assert [entry.key.name for entry in store.list()] == ["a"]
    store.put(widget("e", 21))
    assert store.get(at("e")) is not None


async def test_an_object_is_created_again_after_its_removal() -> None:
    store = await listed(widget("a", 8), version=10)
    store.remove(widget("a", 12))
    store.put(widget("a", 13, uid="new"))
    store.remove(widget("a", 14, uid="new"))
    store.put(widget("a", 13, uid="new"))
    assert store.get(at("a")) is None
    store.put(widget("a", 15, uid="newest"))
    assert store.get(at("a")).uid == "newest"  # type: ignore[union-attr]


async def test_removals_are_remembered_for_a_bounded_number_of_objects() -> None:
    store = await listed(version=10)
    for number in range(2000):
        store.remove(widget(f"gone-{number}", 20 + number))
    store.put(widget("gone-0", 20))
    store.put(widget("gone-1999", 2019))
    assert store.list() == []
    store.put(widget("new", 2018))
    assert [entry.key.name for entry in store.list()] == ["new"]
    assert len(store._layers._removals) <= 1000


@pytest.mark.parametrize("version", ["1" * 5000, "9" * 200])
async def test_a_version_with_thousands_of_digits_is_no_number(version: str) -> None:
    store = await listed(widget("a", 8), version=10)
    store.put(widget("b", version))
    store.put(widget("a", 12))
    store.remove(widget("b", version))
    store.record_write(widget("c", version))
    await relist(store, widget("a", 12), widget("d", version), version=13)
    assert {entry.key.name for entry in store.list()} == {"a", "d"}


async def test_a_removal_with_the_last_version_of_the_object_is_accepted() -> None:
    store = await listed(widget("a", 8), version=100)
    store.remove(widget("a", 8))
    assert store.get(at("a")) is None


async def test_several_removals_may_share_a_version() -> None:
    # Events expire together: etcd deletes them in one step.
    store = await listed(widget("a", 8), widget("b", 9))
    store.remove(widget("a", 12))
    store.remove(widget("b", 12))
    assert store.list() == []


async def test_an_older_list_is_rejected_and_changes_nothing() -> None:
    store = await listed(widget("a", 8))
    store.put(widget("b", 20))
    with pytest.raises(Expired, match="list at version 15 is older than version 20"):
        await relist(store, widget("a", 8), version=15)
    assert {entry.key.name for entry in store.list()} == {"a", "b"}
    store.put(widget("c", 21))
    assert store.get(at("c")) is not None, "no longer staging"


async def test_an_older_list_is_not_accepted_because_it_is_repeated() -> None:
    store = await listed(widget("a", 80), version=100)
    for _ in range(20):
        with pytest.raises(Expired):
            await relist(store, widget("b", 3), version=5)
    assert [entry.key.name for entry in store.list()] == ["a"]


async def test_after_a_restart_of_the_history_versions_may_be_lower_and_mean_something_else() -> None:
    store = await listed(widget("a", 80), widget("same", 5, spec={"size": "old"}), version=100)
    store.record_write(widget("own", 120))
    assert store.newest(1) == [(at("a"), 80)]
    store.restart_history()
    await relist(store, widget("b", 3), widget("same", 5, spec={"size": "new"}), version=5)
    assert {entry.key.name for entry in store.list()} == {"b", "same"}
    assert b"new" in store.get(at("same")).json  # type: ignore[union-attr]
    assert store.version == "5"
    store.put(widget("c", 6))
    assert store.get(at("c")) is not None
    with pytest.raises(Expired):
        await relist(store, widget("b", 3), version=5)


async def test_a_list_reuses_unchanged_entries() -> None:
    store = await listed(widget("a", 8), widget("b", 9))
    before = store.get(at("a"))
    await relist(store, widget("a", 8), widget("b", 11), version=12)
    assert store.get(at("a")) is before


async def test_versions_that_are_not_numbers_compare_only_for_equality(caplog: pytest.LogCaptureFixture) -> None:
    store = await listed(widget("a", "x1"), version=10)
    events = record_events(store)
    store.put(widget("a", "x9"))
    store.put(widget("a", "x9"))
    store.put(widget("a", "x2"))
    store.record_write(widget("a", "x3"))
    store.record_write(widget("b", 99))
    store.record_delete(at("a"), deleted("uid-a"))
    assert store.get(at("a")).version == "x2"  # type: ignore[union-attr]
    assert store.get(at("b")) is None
    store.remove(widget("a", "x3", uid="another"))
    store.remove(widget("a", "x3"))
    assert [event.type for event in events] == ["updated", "updated", "deleted"]
    assert caplog.text.count("not numbers") == 1


async def test_versions_can_be_configured_as_unordered() -> None:
    store = await listed(widget("a", 8), version=10, ordered=False)
    store.put(widget("a", 3))
    store.record_write(widget("b", 99))
    assert store.get(at("a")).version == "3"  # type: ignore[union-attr]
    assert store.get(at("b")) is None


async def test_the_overlay_is_cleared_when_versions_are_not_numbers() -> None:
    store = await listed(widget("a", 8))
    store.record_write(widget("b", 20, labels={"app": "web"}))
    store.put(widget("c", "abc"))
    assert store.get(at("b")) is None
    assert sorted(entry.key.name for entry in store.list()) == ["a", "c"]


def test_an_undecodable_object_changes_nothing() -> None:
    store = Store(WIDGET)
    with pytest.raises(DecodeError):
        store.put(b"{}")
    with pytest.raises(DecodeError):
        store.remove(b'{"metadata":{"name":"a"}}')
    assert store.list() == []


# Overlay


async def test_the_event_of_an_own_write_delivers_the_entry_of_the_write() -> None:
    store = await listed(widget("a", 5))
    events = record_events(store)
    store.record_write(widget("a", 12), base_version="5", writer="me")
    written = store.get(at("a"))

    store.put(widget("a", 12))
    assert store.delivered() == [written]
    assert store.delivered()[0] is written
    assert shape(events) == [("updated", "a", 5, 12)]
    assert [event.writer for event in events] == ["me"]


async def test_a_changed_object_shares_with_its_old_state_what_is_equal() -> None:
    owner = {"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "uid-of-the-owner"}
    labels = {"app": "web", "tier": "front"}
    store = await listed(widget("name-of-a", 5, labels=labels, ownerReferences=[owner]))
    [old] = store.delivered()
    for number in range(2_000):  # more than a pool holds
        store.put(widget(f"other-{number}", 20 + number, labels={"number": str(number)}))

    store.put(widget("name-of-a", 5_000, spec={"size": 2}, labels=labels, ownerReferences=[owner]))
    new = store.get(at("name-of-a"))
    assert new is not None
    assert new.version == 5_000
    assert (new.key is old.key, new.uid is old.uid, new.labels is old.labels, new.owners is old.owners) == (True,) * 4

    store.put(widget("name-of-a", 5_001, uid="another", labels={"app": "db"}))
    newest = store.get(at("name-of-a"))
    assert newest is not None
    assert newest.key is old.key
    assert (newest.uid, newest.label_map(), newest.owners) == ("another", {"app": "db"}, ())


async def test_an_event_of_another_object_with_the_version_of_an_own_write_is_decoded() -> None:
    store = await listed(widget("a", 5))
    store.record_write(widget("a", 12), base_version="5")

    store.put(widget("a", 12, uid="another"))
    assert [one.uid for one in store.delivered()] == ["another"]


async def test_an_own_write_is_visible_to_every_read_until_it_is_delivered() -> None:
    store = await listed(widget("a", 8, labels={"app": "web"}))
    owner = {"apiVersion": "v1", "kind": "O", "name": "o", "uid": "uid-o"}
    store.record_write(widget("b", 20, labels={"app": "db"}, ownerReferences=[owner]))
    store.record_write(widget("a", 21, labels={"app": "db"}))

    assert store.get(at("b")).version == 20  # type: ignore[union-attr]
    assert {entry.version for entry in store.list()} == {20, 21}
    assert [entry.key.name for entry in store.owned_by("uid-o")] == ["b"]
    assert store.stats().pending == 2

    store.put(widget("b", 20, labels={"app": "db"}, ownerReferences=[owner]))
    store.put(widget("a", 21, labels={"app": "db"}))
    assert store.stats().pending == 0
    assert {entry.version for entry in store.list()} == {20, 21}


async def test_a_response_after_its_own_event_is_ignored() -> None:
    store = await listed()
    store.put(widget("a", 11))
    store.remove(widget("a", 12))
    store.record_write(widget("a", 11), created=True)
    assert store.get(at("a")) is None


async def test_a_bookmark_drops_a_pending_write_that_was_never_delivered() -> None:
    store = await listed(widget("a", 8))
    store.record_write(widget("a", 20))
    store.progress("25")
    assert store.get(at("a")).version == 8  # type: ignore[union-attr]


async def test_a_list_older_than_an_own_write_does_not_remove_it() -> None:
    store = await listed()
    store.record_write(widget("a", 20), created=True)
    await relist(store, version=15)
    assert store.get(at("a")) is not None
    await relist(store, version=30)
    assert store.get(at("a")) is None


async def test_an_own_write_in_another_namespace_is_ignored() -> None:
    store = Store(WIDGET, namespace="shop")
    await relist(store, version=10)
    store.record_write(widget("a", 20, namespace="bank"))
    store.record_delete(at("a", "bank"), deleted("uid-a"))
    assert store.list() == []
    assert store.stats().pending == 0


async def test_an_object_that_returned_to_the_selector_by_an_own_write_can_be_deleted() -> None:
    """The removal that was delivered before meant only that it had left the selector."""
    store = await listed(widget("a", 8, labels={"app": "web"}), labels="app=web")
    store.remove(widget("a", 20, labels={"app": "db"}))
    store.record_write(widget("a", 21, labels={"app": "web"}))
    assert store.get(at("a")) is not None
    store.record_delete(at("a"), deleted("uid-a"), version="21")
    assert store.get(at("a")) is None


async def test_an_own_write_out_of_the_selector_hides_the_object() -> None:
    store = await listed(widget("a", 8, labels={"app": "web"}), labels="app=web")
    store.record_write(widget("a", 20, labels={"app": "db"}))
    assert store.get(at("a")) is None
    store.record_write(widget("a", 21, labels={"app": "web"}))
    assert store.get(at("a")).version == 21  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "spec", "seen"),
    [
        ("spec.nodeName=n1", {"nodeName": "n1"}, True),
        ("spec.nodeName=n1", {"nodeName": "n2"}, False),
        ("spec.nodeName!=n1", {"nodeName": "n2"}, True),
        ("spec.nodeName=", {}, True),
        ("spec.hostNetwork=false", {}, True),
        ("spec.hostNetwork=true", {"hostNetwork": True}, True),
        ("spec.nodeName=N1", {"nodeName": "N1"}, True),
        ("spec.nodeName=n1", {"nodeName": "N1"}, False),
        ("spec.nodeName=n1,spec.count=3", {"nodeName": "n1", "count": 3}, True),
        ("spec.nodeName=n1,spec.count=3", {"nodeName": "n1", "count": 4}, False),
        ("spec.count=3", {"count": 3}, True),
        ("spec.count!=0", {}, False),
        ("metadata.name=a", {}, True),
        ("metadata.name=b", {}, False),
    ],
)
async def test_an_own_write_is_matched_against_the_field_selector(fields: str, spec: object, seen: bool) -> None:
    store = await listed(fields=fields)
    store.record_write(widget("a", 20, spec=spec), created=True)
    assert (store.get(at("a")) is not None) is seen


async def test_a_field_with_a_special_meaning_is_left_to_the_server() -> None:
    store = await listed(widget("a", 8, spec={"source": {"component": "kubelet"}}), fields="spec.source=kubelet")
    store.record_write(widget("a", 20, spec={"source": {"component": "scheduler"}}))
    assert store.get(at("a")).version == 8  # type: ignore[union-attr]


async def test_an_own_write_goes_through_the_transform() -> None:
    def drop_spec(obj: Unstructured) -> None:
        del obj["spec"]

    store = await listed(transform=drop_spec)
    store.record_write(widget("a", 20, spec={"secret": "x"}))
    assert b"secret" not in store.get(at("a")).json  # type: ignore[union-attr]


async def test_an_own_delete_hides_the_object() -> None:
    store = await listed(widget("a", 8))
    store.record_delete(at("a"), deleted("uid-a"))
    assert store.get(at("a")) is None
    store.put(widget("a", 12))
    assert store.get(at("a")) is None, "a change that was already sent"
    await relist(store, widget("a", 12), version=12)
    assert store.get(at("a")) is None, "a list from before the delete"
    store.remove(widget("a", 14))
    assert store.stats().pending == 0


async def test_a_recreated_object_of_the_same_name_is_visible() -> None:
    store = await listed(widget("a", 8))
    store.record_delete(at("a"), deleted("uid-a"), version="8")
    store.record_write(widget("a", 20, uid="second"), created=True)
    assert store.get(at("a")).uid == "second"  # type: ignore[union-attr]
    store.put(widget("a", 9))
    assert store.get(at("a")).uid == "second"  # type: ignore[union-attr]
    store.remove(widget("a", 10))
    store.put(widget("a", 20, uid="second"))
    assert store.get(at("a")).uid == "second"  # type: ignore[union-attr]
    assert store.stats().pending == 0


async def test_an_object_created_and_deleted_before_the_watch_delivers_it() -> None:
    store = await listed()
    store.record_write(widget("a", 20), created=True)
    store.record_delete(at("a"), deleted("uid-a"))
    assert store.get(at("a")) is None
    store.put(widget("a", 20))
    assert store.get(at("a")) is None
    store.remove(widget("a", 22))
    assert store.stats().pending == 0


@pytest.mark.parametrize("version", ["8", ""])
async def test_a_delete_recorded_after_its_delivery_leaves_no_tombstone(version: str) -> None:
    store = await listed(widget("a", 8))
    store.remove(widget("a", 12))
    store.record_delete(at("a"), deleted("uid-a"), version=version)
    assert store.stats().pending == 0


async def test_a_delete_response_with_the_object_is_a_delete() -> None:
    store = await listed(widget("a", 8))
    store.record_delete(at("a"), widget("a", 12))
    assert store.get(at("a")) is None
    store.progress("12")
    assert store.get(at("a")) is None, "the list may still show it"
    store.remove(widget("a", 12))
    assert store.stats().pending == 0


async def test_a_delete_that_waits_for_finalizers_shows_a_terminating_object() -> None:
    store = await listed(widget("a", 8, finalizers=["f"]))
    store.record_delete(at("a"), widget("a", 12, finalizers=["f"], **GONE))
    assert store.get(at("a")).terminating  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", [b'{"kind":"Status"}', b"", b"<html>"])
async def test_a_delete_response_without_a_uid_applies_to_the_visible_object(answer: bytes) -> None:
    store = await listed(widget("a", 8))
    store.record_delete(at("a"), answer)
    assert store.get(at("a")) is None
    store.put(widget("a", 20, uid="second"))
    assert store.get(at("a")) is not None


async def test_tombstones_of_unknown_objects_are_dropped_by_the_next_list() -> None:
    store = await listed()
    store.record_delete(at("a"), deleted("uid-a"))
    store.put(widget("a", 12))
    assert store.get(at("a")) is None
    await relist(store, version=15)
    assert store.stats().pending == 0


async def test_tombstones_of_unknown_objects_are_bounded() -> None:
    store = await listed()
    for number in range(1100):
        store.record_delete(at(f"a-{number}"), deleted(f"uid-{number}"))
    assert store.stats().pending == 1000


async def test_a_response_without_the_last_finalizer_is_a_delete() -> None:
    store = await listed(widget("a", 8, finalizers=["f"], **GONE))
    store.record_write(widget("a", 20, **GONE))
    assert store.get(at("a")) is None


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({**GONE, "finalizers": ["f"]}, {}),
        ({**GONE, "deletionGracePeriodSeconds": 30}, {}),
        (GONE, {"finalizers": ["kubernetes"]}),
    ],
)
async def test_a_terminating_object_is_still_visible(metadata: dict[str, Any], spec: object) -> None:
    store = await listed(widget("a", 8))
    store.record_write(widget("a", 20, spec=spec, **metadata))
    assert store.get(at("a")).terminating  # type: ignore[union-attr]


# Events


async def test_every_change_is_reported_from_delivered_to_delivered() -> None:
    store = await listed(widget("a", 8))
    events = record_events(store)
    store.record_write(widget("a", 30))
    assert events == [], "an own write is no event"
    store.put(widget("a", 20))
    store.put(widget("a", 30))
    store.put(widget("b", 31))
    store.remove(widget("a", 32))
    assert shape(events) == [
        ("updated", "a", 8, 20),
        ("updated", "a", 20, 30),
        ("added", "b", None, 31),
        ("deleted", "a", 32, None),
    ]


async def test_an_object_missing_from_a_list_is_reported_as_deleted_with_its_last_state() -> None:
    store = await listed(widget("a", 8), widget("b", 9))
    events = record_events(store)
    await relist(store, widget("b", 9), version=20)
    assert shape(events) == [("deleted", "a", 8, None)]
    assert events[0].listed


async def test_another_object_of_the_same_name_is_two_events() -> None:
    store = await listed(widget("a", 8))
    events = record_events(store)
    await relist(store, widget("a", 15, uid="second"), version=20)
    assert shape(events) == [("deleted", "a", 8, None), ("added", "a", None, 15)]


async def test_handlers_find_the_change_in_the_store() -> None:
    store = await listed()
    seen: list[object] = []
    store.subscribe(lambda event: seen.append((store.get(event.key), len(store.owned_by("o")))))
    owner = {"apiVersion": "v1", "kind": "O", "name": "o", "uid": "o"}
    store.put(widget("a", 11, ownerReferences=[owner]))
    assert seen == [(store.get(at("a")), 1)]


@pytest.mark.parametrize(
    ("created", "base", "signed"),
    [(True, "", True), (False, "8", True), (False, "20", False), (False, "", False)],
)
async def test_an_event_has_its_writer_when_its_version_is_purely_own(created: bool, base: str, signed: bool) -> None:
    store = await listed(widget("a", 8))
    events = record_events(store)
    store.record_write(widget("a", 20), created=created, base_version=base, writer="me")
    store.put(widget("a", 20))
    assert [event.writer for event in events] == ["me" if signed else None]


async def test_a_foreign_change_before_an_own_write_is_reported_without_a_writer() -> None:
    store = await listed(widget("a", 8))
    events = record_events(store)
    store.record_write(widget("a", 21), base_version="20", writer="me")
    store.put(widget("a", 20))
    store.put(widget("a", 21))
    assert [event.writer for event in events] == [None, "me"]


async def test_a_removal_has_the_writer_that_deleted_the_uid() -> None:
    store = await listed(widget("a", 8), widget("b", 9))
    events = record_events(store)
    store.record_delete(at("a"), deleted("uid-a"), writer="me")
    store.record_delete(at("b"), deleted("another"), writer="me")
    store.remove(widget("a", 20))
    store.remove(widget("b", 21))
    assert [event.writer for event in events] == ["me", None]


async def test_after_a_list_no_event_has_a_writer() -> None:
    store = await listed(widget("a", 8), widget("b", 9))
    events = record_events(store)
    store.record_write(widget("a", 20), base_version="8", writer="me")
    store.record_write(widget("a", 22), base_version="20", writer="me")
    store.record_delete(at("b"), deleted("uid-b"), writer="me")
    await relist(store, widget("a", 20), widget("b", 9), version=20)
    store.put(widget("a", 22))
    store.remove(widget("b", 23))
    assert [event.writer for event in events] == [None, None, None]


async def test_a_first_list_is_reported_in_batches_and_lets_other_tasks_run() -> None:
    store = Store(WIDGET)
    calls: list[int] = []
    turns: list[int] = []
    store.subscribe(lambda _: calls.append(1))

    async def somebody_else() -> None:
        while True:
            turns.append(len(calls))
            await asyncio.sleep(0)

    task = asyncio.create_task(somebody_else())
    await asyncio.sleep(0)
    await relist(store, *(widget(f"a-{number}", number + 1) for number in range(1200)), version=2000)
    task.cancel()
    assert len(calls) == 1200
    assert turns[:4] == [0, 500, 1000, 1200] or turns[:3] == [0, 500, 1000]


async def test_the_time_to_report_a_list_does_not_grow_with_its_square() -> None:
    """With a time that does, 300,000 objects would take minutes."""
    count = 300_000
    entry = (await listed(widget("a", 1), version=2)).get(at("a"))
    names: list[str] = []
    subscription = Subscription(lambda event: names.append(event.type))
    for number in range(count):
        subscription.add_pending(at(f"a-{number}"), None, entry)
    while subscription.notify_pending(500):
        pass
    assert names == ["added"] * count


async def test_a_late_subscriber_receives_existing_objects_in_order() -> None:
    store = await listed(*(widget(f"a-{number}", number + 1) for number in range(5)), version=10)
    events: list[Event] = []
    store.subscribe(events.append)
    store.notify_pending(2)
    store.put(widget("a-4", 11))
    store.remove(widget("a-3", 12))
    while store.notify_pending(1):
        pass
    assert [(event.type, event.key.name) for event in events] == [
        ("added", "a-0"),
        ("added", "a-1"),
        ("added", "a-4"),
        ("updated", "a-4"),
        ("added", "a-3"),
        ("deleted", "a-3"),
        ("added", "a-2"),
    ]


async def test_a_failing_handler_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = await listed()

    def broken(event: Event) -> None:
        raise RuntimeError(event.type)

    store.subscribe(broken)
    events = record_events(store)
    with caplog.at_level(logging.ERROR):
        store.put(widget("a", 11))
    assert [event.type for event in events] == [EventType.ADDED]
    assert "event handler failed" in caplog.text


async def test_a_closed_subscription_receives_no_events() -> None:
    store = await listed()
    events: list[Event] = []
    subscription = store.subscribe(events.append)
    subscription.close()
    subscription.close()
    store.put(widget("a", 11))
    assert events == []


# Other threads


async def test_threads_may_read_while_the_store_is_written() -> None:
    store = await listed(*(widget(f"a-{number}", number + 1) for number in range(200)), version=1000)
    store.add_index("spec", by_path(".spec.value"))
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                assert all(entry.json for entry in store.list())
                assert all(entry.json for entry in store.find("spec", 1))
            except BaseException as error:
                failures.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for version in range(1001, 2000):
        name = f"a-{version % 300}"
        if store.get(at(name)) is not None and version % 3 == 0:
            store.remove(widget(name, version))
        else:
            store.put(widget(name, version, spec={"value": version % 2}))
    stop.set()
    reader.join()
    assert failures == []
