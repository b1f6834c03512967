"""The layers of a store at their limits: versions that are equal, own deletes at the high-water mark, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from cached_objects import WIDGET, at, deleted, listed, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry, SharedFieldsEntry
from konverge.cache.events import Event
from konverge.cache.indexes import by_path
from konverge.cache.layers import Change, Layers
from konverge.cache.store import StoreStats
from konverge.errors import Expired
from konverge.objects import LabelSelector

GONE: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def entry(name: str, version: int, **more: Any) -> Entry:
    return Decoder(WIDGET).decode(widget(name, version, **more))


def layers_at(version: str, *entries: Entry, ordered: bool = True) -> Layers:
    """Return layers after a list."""
    layers = Layers(WIDGET, ordered=ordered)
    layers.begin()
    for one in entries:
        layers.stage(one.key, one)
    layers.swap(version)
    return layers


def names(entries: list[Entry]) -> list[str]:
    return sorted(one.key.name for one in entries)


# Versions


def test_nothing_is_delivered_before_the_first_list() -> None:
    layers = Layers(WIDGET, ordered=True)
    assert (layers.version, layers.pending, layers.list_started) == ("", 0, False)
    assert (layers.list_delivered(), layers.list_visible()) == ([], [])
    assert layers.is_pending(0)


def test_a_list_at_version_zero_is_a_list() -> None:
    first = entry("a", 0)
    layers = layers_at("0", first)
    assert layers.version == "0"
    assert layers.known_entry(at("a")) is first
    assert layers.seen_entry(at("a")) is first
    assert not layers.is_pending(0)
    assert layers.is_pending(1)


def test_no_entry_is_known_after_a_restart_of_the_history_until_the_next_list() -> None:
    layers = layers_at("10", entry("a", 5))
    layers.restart_history()
    assert (layers.known_entry(at("a")), layers.seen_entry(at("a"))) == (None, None)
    layers.begin()
    layers.swap("0")
    assert layers.version == "0"


def test_without_an_order_of_versions_entries_are_always_known() -> None:
    layers = layers_at("10", entry("a", 5), ordered=False)
    assert layers.known_entry(at("a")) is layers.seen_entry(at("a")) is layers.get(at("a"))
    assert (layers.version, layers.is_pending(99)) == ("10", False)


def test_without_an_order_of_versions_a_list_may_have_any() -> None:
    layers = layers_at("10", ordered=False)
    layers.begin()
    layers.swap("3")
    assert layers.version == "3"


def test_a_version_that_is_no_number_replaces_the_last_one_unless_it_is_empty() -> None:
    layers = layers_at("10")
    layers.advance("x")
    layers.advance("")
    assert layers.version == "x"


def test_the_high_water_mark_never_decreases() -> None:
    layers = layers_at("10")
    layers.advance(9)
    layers.complete(8)
    assert layers.version == "10"
    layers.advance(11)
    assert layers.version == "11"


def test_a_bookmark_at_the_high_water_mark_means_that_everything_is_known() -> None:
    layers = layers_at("10")
    layers.put(entry("b", 14))
    layers.complete(13)  # late: it says nothing about version 12
    assert layers.put(entry("a", 12)) is not None
    layers.complete(14)
    assert layers.put(entry("c", 13)) is None


def test_the_error_for_an_older_list_names_both_versions_the_verb_and_the_kind() -> None:
    layers = layers_at("10")
    layers.begin()
    with pytest.raises(Expired) as caught:
        layers.swap("9")
    text = "list Widget: list at version 9 is older than version 10, which is already delivered"
    assert (str(caught.value), caught.value.verb, caught.value.kind) == (text, "list", "Widget")
    assert not layers.list_started
    layers.begin()
    assert layers.swap("10") == []


async def test_the_version_of_a_bookmark_may_be_no_number() -> None:
    store = await listed(widget("a", 5))
    store.progress("12")
    assert store.version == "12"
    store.progress("x")
    assert store.version == "x"


# The delivered layer


def test_a_change_has_the_old_and_the_new_state_and_the_writer() -> None:
    old, new = entry("a", 5), entry("a", 12)
    layers = layers_at("10", old)
    layers.record_writer(12, "me")
    assert layers.put(new) == Change(at("a"), old, new, "me")
    assert layers.put(entry("a", 12)) is None, "delivered already"


def test_a_removal_has_the_last_state_of_the_same_object() -> None:
    old, last = entry("a", 5), entry("a", 12)
    layers = layers_at("10", old)
    assert layers.remove(last) == Change(at("a"), last, None, None)
    assert layers.remove(last) is None
    layers = layers_at("10", old)
    assert layers.remove(entry("a", 12, uid="second")) == Change(at("a"), old, None, None)


def test_the_writer_of_a_removal_is_its_deleter_or_the_writer_of_its_version() -> None:
    layers = layers_at("10", entry("a", 5), entry("b", 6))
    layers.record_writer(12, "writer")
    layers.record_writer(13, "writer")
    layers.add_tombstone(at("a"), "uid-a", 5, "deleter")
    changes = layers.remove(entry("a", 12)), layers.remove(entry("b", 13))
    assert [change and change.writer for change in changes] == ["deleter", "writer"]


def test_a_stale_removal_raises_the_high_water_mark_and_removes_nothing() -> None:
    layers = layers_at("10", entry("a", 9))
    assert layers.remove(entry("a", 8)) is None
    assert layers.remove(entry("unknown", 12)) is None
    assert (layers.version, names(layers.list_delivered())) == ("12", ["a"])


def test_an_empty_namespace_is_no_group_any_more() -> None:
    layers = layers_at("10", entry("a", 5), entry("b", 6, namespace="bank"))
    layers.remove(entry("a", 12))
    assert list(layers._delivered) == ["bank"]
    layers.begin()
    layers.stage(at("b", "bank"), entry("b", 6, namespace="bank"))
    layers.stage(at("b", "bank"), None)
    layers.swap("20")
    assert layers._delivered == {}


def test_the_differences_of_a_list_are_additions_changes_and_removals() -> None:
    kept, old, gone = entry("kept", 1), entry("changed", 2), entry("gone", 3)
    far = entry("far", 4, namespace="bank")
    layers = layers_at("10", kept, old, gone, far)
    new, added = entry("changed", 12), entry("added", 13, namespace="club")
    layers.begin()
    for one in (kept, new, added):
        layers.stage(one.key, one)
    assert layers.swap("20") == [
        Change(at("changed"), old, new),
        Change(at("added", "club"), None, added),
        Change(at("gone"), gone, None),
        Change(at("far", "bank"), far, None),
    ]


def test_entries_can_be_replaced_by_another_form() -> None:
    layers = layers_at("10", entry("a", 5), entry("b", 6, namespace="bank"))
    layers.replace_entries(lambda one: entry(one.key.name, 77, namespace=one.key.namespace))
    assert [one.version for one in layers.list_delivered()] == [77, 77]


# Own writes


def test_reads_of_a_namespace_show_own_writes_of_that_namespace_only() -> None:
    layers = layers_at("10", entry("a", 5), entry("b", 6, namespace="bank"))
    layers.add_write(at("a"), 12, entry("a", 12))
    layers.add_write(at("c"), 13, entry("c", 13))
    layers.add_write(at("d", "bank"), 14, entry("d", 14, namespace="bank"))
    assert sorted((one.key.name, one.version) for one in layers.list_visible("shop")) == [("a", 12), ("c", 13)]
    assert names(layers.list_visible("bank")) == ["b", "d"]
    assert names(layers.list_visible()) == ["a", "b", "c", "d"]
    keys = (at("a"), at("b", "bank"), at("unknown"))
    assert names(layers.get_many(keys)) == ["a", "b"]
    assert names(layers.get_many(keys, "bank")) == ["b"]
    assert layers.list_delivered("nowhere") == []


def test_an_own_delete_is_known_at_the_version_that_is_delivered() -> None:
    """A version up to the high-water mark of an object that is not delivered: its removal is delivered too."""
    layers = layers_at("10")
    layers.add_tombstone(at("a"), "uid-a", 10, None)
    assert layers.pending == 0
    layers.add_tombstone(at("a"), "uid-a", 11, None)
    assert layers.pending == 2, "the tombstone, and the absence of earlier objects of that name"
    layers.add_tombstone(at("b"), "uid-b", 0, None)
    assert layers.pending == 3


def test_an_own_delete_at_the_high_water_mark_hides_no_other_object_of_the_name() -> None:
    layers = layers_at("10", entry("a", 10))
    layers.add_tombstone(at("a"), "uid-a", 0, None)
    assert (layers.get(at("a")), layers.pending) == (None, 1)
    layers.put(entry("a", 11, uid="second"))
    assert layers.get(at("a")) is not None


def test_an_own_delete_with_a_newer_version_hides_an_earlier_object_of_the_name() -> None:
    layers = layers_at("10", entry("a", 5, uid="first"))
    layers.add_tombstone(at("a"), "second", 12, None)
    assert layers.get(at("a")) is None
    layers.put(entry("a", 11, uid="first"))
    assert layers.get(at("a")) is None
    layers.put(entry("a", 13, uid="third"))
    assert layers.get(at("a")) is not None


def test_an_own_delete_of_another_uid_keeps_the_delivered_object() -> None:
    layers = layers_at("10", entry("a", 9, uid="first"))
    layers.add_tombstone(at("a"), "second", 8, None)
    assert layers.get(at("a")) is not None
    assert layers.pending == 0, "its removal was delivered before"


@pytest.mark.parametrize(("ordered", "uid"), [(False, "uid-a"), (True, "")])
def test_an_own_delete_without_a_uid_or_an_order_of_versions_is_not_stored(ordered: bool, uid: str) -> None:
    layers = layers_at("10", entry("a", 5), ordered=ordered)
    layers.add_tombstone(at("a"), uid, 0, None)
    assert layers.pending == 0
    assert layers.get(at("a")) is not None


def test_an_object_known_from_an_own_write_is_gone_if_a_list_at_its_version_lacks_it() -> None:
    layers = layers_at("10")
    layers.add_write(at("a"), 12, entry("a", 12))
    assert layers.deletions_to_report("12") == [], "no list was read"
    layers.begin()
    assert layers.deletions_to_report("11") == []
    assert layers.deletions_to_report("x") == []
    assert names(layers.deletions_to_report("12")) == ["a"]
    layers.stage(at("a"), entry("a", 12, uid="second"))
    assert names(layers.deletions_to_report("12")) == ["a"]
    layers.stage(at("a"), entry("a", 12))
    assert layers.deletions_to_report("12") == []


def test_a_delivered_object_that_a_list_lacks_is_reported_as_any_other() -> None:
    layers = layers_at("10", entry("a", 5))
    layers.add_write(at("a"), 12, entry("a", 12))
    layers.begin()
    assert layers.deletions_to_report("12") == []


@pytest.mark.parametrize("ordered", [True, False])
def test_a_late_response_reports_a_deletion_only_for_an_unknown_object(ordered: bool) -> None:
    layers = layers_at("10", entry("a", 5), ordered=ordered)
    assert layers.must_report_deletion(entry("b", 6)) is ordered
    assert not layers.must_report_deletion(entry("a", 6))
    assert layers.must_report_deletion(entry("a", 6, uid="second")) is ordered
    text = Decoder(WIDGET, ordered=False).decode(widget("c", 7))
    assert not layers.must_report_deletion(text)


def test_an_object_without_a_uid_is_like_no_object() -> None:
    layers = layers_at("10")
    nameless = Decoder(WIDGET).decode(b'{"metadata":{"name":"a","resourceVersion":"6"}}')
    assert not layers.must_report_deletion(nameless)


@pytest.mark.parametrize(("spec", "reported"), [({"node": "n"}, 1), ({"node": "m"}, 0), ({"node": {"x": 1}}, 0)])
async def test_a_late_response_reports_a_deletion_only_in_the_selection(spec: Any, reported: int) -> None:
    store, events = await listed(fields="spec.node=n"), list[Event]()
    store.subscribe(events.append, at_once=True)
    store.record_write(widget("a", 7, spec=spec), created=True)
    assert len(events) == reported


# Indexes


@pytest.mark.parametrize("restart", [True, False])
async def test_indexes_show_what_is_delivered_when_own_writes_are_forgotten(restart: bool) -> None:
    store = await listed(
        widget("a", 5, spec={"size": 1}), widget("b", 6, spec={"size": 1}), indexes=(("size", by_path(".spec.size")),)
    )
    store.record_write(widget("a", 12, spec={"size": 2}))
    store.record_write(widget("c", 13, spec={"size": 1}), created=True)
    store.record_delete(at("b"), deleted("uid-b"))
    assert (names(store.find("size", 1)), names(store.find("size", 2))) == (["c"], ["a"])
    if restart:
        store.restart_history()
        assert names(store.find("size", 1)) == ["a", "b"]
    else:
        store.put(widget("d", "x", spec={"size": 3}))
        assert names(store.find("size", 1)) == ["a", "b"]
    assert store.find("size", 2) == []
    assert store.stats().pending == 0


async def test_indexes_keep_another_object_of_the_name_when_an_own_delete_is_recorded() -> None:
    store = await listed(widget("a", 5, spec={"size": 1}), indexes=(("size", by_path(".spec.size")),))
    store.record_write(widget("a", 20, uid="second", spec={"size": 2}), created=True)
    store.record_delete(at("a"), deleted("uid-a"), version="5")
    assert (store.find("size", 1), names(store.find("size", 2))) == ([], ["a"])


async def test_indexes_follow_bookmarks_that_end_own_writes() -> None:
    store = await listed(widget("a", 5, spec={"size": 1}), indexes=(("size", by_path(".spec.size")),))
    store.record_write(widget("a", 12, spec={"size": 2}))
    store.progress("12")
    assert (names(store.find("size", 1)), store.find("size", 2)) == (["a"], [])


# The store


async def test_the_stats_of_a_store() -> None:
    one, other = widget("a", 5), widget("b", 6)
    store = await listed(one, other, indexes=(("size", by_path(".spec.size")),))
    store.record_write(widget("c", 12))
    assert store.stats() == StoreStats(2, len(one) + len(other), 1, "10", ("size",))


async def test_the_newest_objects_come_first() -> None:
    store = await listed(*(widget(name, version) for name, version in (("a", 5), ("b", 9), ("c", 7))))
    assert store.newest(2) == [(at("b"), 9), (at("c"), 7)]
    assert (await listed(widget("a", "x"), ordered=False)).newest(2) == []


async def test_a_put_and_a_removal_return_the_version() -> None:
    store = await listed()
    assert (store.put(widget("a", 12)), store.remove(widget("a", 13))) == ("12", "13")
    store.begin()
    assert (store.put(widget("a", 14)), store.remove(widget("a", 15))) == ("14", "15")


async def test_by_default_all_managed_fields_are_dropped() -> None:
    managed = [{"manager": name, "operation": "Apply"} for name in ("", "XXXX", "ours")]
    store = await listed(widget("a", 5, managedFields=managed))
    assert b"managedFields" not in store.delivered()[0].json
    store = await listed(widget("a", 5, managedFields=managed), manager="ours")
    assert b'"managedFields":[{"manager":"ours","operation":"Apply"}]' in store.delivered()[0].json
    assert isinstance(store.delivered()[0], SharedFieldsEntry)


async def test_by_default_an_own_write_is_no_create_and_has_no_writer() -> None:
    store, events = await listed(), list[Event]()
    store.subscribe(events.append, at_once=True)
    store.record_write(widget("a", 12), writer="me")
    store.put(widget("a", 12))
    store.record_write(widget("b", 13), created=True)
    store.put(widget("b", 13))
    assert [event.writer for event in events] == [None, None]


async def test_a_response_with_a_deletion_timestamp_is_a_delete_with_its_version_and_writer() -> None:
    store, events = await listed(widget("a", 5)), list[Event]()
    store.subscribe(events.append, at_once=True)
    store.record_write(widget("a", 12, **GONE), writer="me")
    assert (store.get(at("a")), store.stats().pending) == (None, 2)
    store.remove(widget("a", 12))
    assert [(event.type, event.writer) for event in events][1:] == [("deleted", "me")]
    assert store.stats().pending == 0


async def test_the_version_of_an_own_delete_is_the_newest_that_is_known() -> None:
    store = await listed(version=10)
    store.record_delete(at("a"), widget("a", 12), version="11")
    store.progress("11")
    assert store.stats().pending == 2
    store.record_delete(at("b"), widget("b", 13), version="15")
    store.progress("14")
    assert store.stats().pending == 2
    store.progress("15")
    assert store.stats().pending == 0


async def test_the_response_of_a_delete_without_a_uid_of_an_unknown_object_changes_nothing() -> None:
    store = await listed(widget("a", 5))
    store.record_delete(at("unknown"), b'{"kind":"Status"}', version="12")
    assert (store.stats().pending, names(store.list())) == (0, ["a"])


async def test_the_response_of_a_delete_that_waits_has_its_writer_and_is_seen() -> None:
    store = await listed(widget("a", 5))
    store.record_delete(at("a"), widget("a", 12, finalizers=["f"], **GONE), writer="me")
    found = store.get(at("a"))
    assert found is not None
    assert (found.version, found.terminating) == (12, True)


async def test_a_list_by_labels_and_namespace_includes_own_writes() -> None:
    store = await listed(widget("a", 5, labels={"app": "web"}), widget("b", 6, labels={"app": "db"}))
    store.record_write(widget("c", 12, namespace="bank", labels={"app": "web"}), created=True)
    web, not_db = LabelSelector.parse("app=web"), LabelSelector.parse("app!=db")
    assert names(store.list(labels=web)) == names(store.list(labels=not_db)) == ["a", "c"]
    assert names(store.list(labels=web, namespace="bank")) == ["c"]
    assert names(store.list(labels=not_db, namespace="shop")) == ["a"]
    assert names(store.list(labels=LabelSelector.parse(""))) == ["a", "b", "c"]


async def test_existing_objects_are_reported_at_once_only_on_demand() -> None:
    store, early, late = await listed(widget("a", 5), widget("b", 6)), list[Event](), list[Event]()
    store.subscribe(early.append, at_once=True)
    store.subscribe(late.append)
    assert (len(early), len(late)) == (2, 0)
    assert store.notify_pending(1)
    assert not store.notify_pending(1)
    assert (len(early), len(late)) == (2, 2)


async def test_more_is_left_while_any_subscriber_has_pending_changes() -> None:
    store, events = await listed(*(widget(f"a-{number}", number + 1) for number in range(3))), list[Event]()
    store.subscribe(events.append)
    store.subscribe(events.append, at_once=True)
    assert store.notify_pending(2), "the first has one left"


async def test_by_default_500_changes_are_reported_in_a_batch() -> None:
    store, events = await listed(*(widget(f"a-{n}", n + 1) for n in range(501)), version=600), list[Event]()
    store.subscribe(events.append)
    assert store.notify_pending()
    assert len(events) == 500
