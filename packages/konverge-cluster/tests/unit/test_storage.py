"""Storage: one revision, ordered collections, a bounded history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.storage import Change, Collection, Entry, RevisionExpired, Storage

CONFIG_MAPS = ("", "configmaps")
OTHERS = ("", "others")


def put(storage: Storage, key: str, text: str = "", name: tuple[str, str] = CONFIG_MAPS) -> Entry:
    entry = Entry(key, text.encode(), storage.next_revision, "uid")
    storage.put(storage.collection(name), entry)
    return entry


def delete(storage: Storage, key: str, name: tuple[str, str] = CONFIG_MAPS) -> None:
    storage.delete(storage.collection(name), Entry(key, b"", storage.next_revision, "uid"))


def keys(entries: list[Entry]) -> list[str]:
    return [entry.key for entry in entries]


def test_every_write_increments_the_revision_of_the_storage() -> None:
    storage = Storage()

    first = put(storage, "a/x")
    second = put(storage, "a/x", name=OTHERS)
    delete(storage, "a/x")

    assert (first.revision, second.revision, storage.revision) == (2, 3, 4)


def test_an_entry_for_another_revision_is_rejected_and_changes_nothing() -> None:
    storage = Storage()

    with pytest.raises(ValueError, match="revision 7"):
        storage.put(storage.collection(CONFIG_MAPS), Entry("a", b"", 7, "uid"))

    assert storage.revision == 1
    assert len(storage.collection(CONFIG_MAPS)) == 0


def test_entries_are_sorted_like_keys_on_the_real_server() -> None:
    storage = Storage()
    # "-" and "." come before "/", so the namespace "a-b" comes before "a".
    for key in ("b/a", "a/z", "a-b/x", "a/b", "a.c/q"):
        put(storage, key)

    found = storage.collection(CONFIG_MAPS)

    assert keys(found.entries()) == ["a-b/x", "a.c/q", "a/b", "a/z", "b/a"]
    assert keys(found.entries("a")) == ["a/b", "a/z"]
    assert keys(found.entries("a", start="a/c")) == ["a/z"]
    assert found.count("a") == 2


def test_the_state_at_an_earlier_revision_is_available() -> None:
    storage = Storage()
    put(storage, "a", "1")
    put(storage, "b", "1")
    then = storage.revision
    put(storage, "a", "2")
    delete(storage, "b")
    put(storage, "c", "1")

    before = storage.collection(CONFIG_MAPS).entries_at(then)

    assert [(entry.key, entry.raw) for entry in before] == [("a", b"1"), ("b", b"1")]


def test_compaction_affects_every_collection_even_one_created_later() -> None:
    storage = Storage()
    put(storage, "a")
    put(storage, "b", name=OTHERS)
    storage.compact()

    for name in (CONFIG_MAPS, OTHERS, ("", "new")):
        with pytest.raises(RevisionExpired) as caught:
            storage.collection(name).entries_at(1)
        assert caught.value.oldest == 3

    assert keys(storage.collection(CONFIG_MAPS).entries_at(3)) == ["a"]


def test_a_long_history_is_trimmed_and_an_expired_position_is_detected() -> None:
    storage = Storage(history=4)
    found = storage.collection(CONFIG_MAPS)
    place = found.position_after(storage.revision)
    for number in range(20):
        put(storage, "a", str(number))

    assert found.changes_from(place) is None
    with pytest.raises(RevisionExpired):
        found.position_after(2)
    recent = found.changes_from(found.position_after(storage.revision - 4))
    assert recent is not None
    assert [change.entry.raw for change in recent] == [b"16", b"17", b"18", b"19"]


def test_a_history_of_large_objects_is_trimmed_by_size() -> None:
    storage = Storage(history=1000, history_bytes=10_000)
    for _ in range(50):
        put(storage, "a", "x" * 1000)

    with pytest.raises(RevisionExpired):
        storage.collection(CONFIG_MAPS).position_after(storage.revision - 20)
    assert storage.collection(CONFIG_MAPS).changes_from(
        storage.collection(CONFIG_MAPS).position_after(storage.revision - 5)
    )


def test_the_histories_of_all_collections_together_are_limited_the_largest_first() -> None:
    storage = Storage(history=1000, history_bytes=20_000)
    for number in range(200):
        put(storage, "a", "x" * 1000)
        if number < 4:
            put(storage, "b", "y" * 1000, name=OTHERS)

    rare, frequent = storage.collection(OTHERS), storage.collection(CONFIG_MAPS)
    assert rare.position_after(1) == 0
    assert frequent.compact_revision > storage.revision - 20
    changes = frequent.changes_from(frequent.position_after(frequent.compact_revision))
    assert changes is not None
    assert 5 <= len(changes) <= 17


def test_encoded_events_of_old_changes_are_dropped() -> None:
    storage = Storage()
    found = storage.collection(CONFIG_MAPS)
    for _ in range(600):
        put(storage, "a")
        changes = found.changes_from(found.position_after(storage.revision - 1))
        assert changes is not None
        changes[0].cache["frame"] = b"encoded"

    every = found.changes_from(0)
    assert every is not None
    assert not any(change.cache for change in every[:300])
    assert all(change.cache for change in every[-200:])


def test_a_subscriber_is_called_after_each_change_until_it_unsubscribes() -> None:
    storage = Storage()
    found = storage.collection(CONFIG_MAPS)
    seen: list[int] = []
    found.subscribe("me", lambda: seen.append(storage.revision))
    put(storage, "a")
    put(storage, "a", name=OTHERS)
    put(storage, "b")
    found.unsubscribe("me")
    put(storage, "c")

    assert seen == [2, 4]
    assert found.watcher_count == 0


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("pdc"), st.sampled_from(["a/x", "a/y", "b/x", "c"])), max_size=40),
    st.integers(2, 12),
)
def test_every_state_within_the_history_can_be_restored(steps: list[tuple[str, str]], history: int) -> None:
    storage = Storage(history=history)
    found = storage.collection(CONFIG_MAPS)
    states: dict[int, dict[str, bytes]] = {1: {}}
    model: dict[str, bytes] = {}
    for act, key in steps:
        if act == "d" and key in model:
            delete(storage, key)
            del model[key]
        elif act == "c":
            storage.compact()
        else:
            model[key] = str(storage.next_revision).encode()
            put(storage, key, model[key].decode())
        states[storage.revision] = dict(model)

    for revision, state in states.items():
        if revision >= found.compact_revision:
            assert {entry.key: entry.raw for entry in found.entries_at(revision)} == state
            assert replayed(state, found, revision) == model
        else:
            with pytest.raises(RevisionExpired):
                found.entries_at(revision)


def replayed(state: dict[str, bytes], found: Collection, revision: int) -> dict[str, bytes]:
    changes: list[Change] | None = found.changes_from(found.position_after(revision))
    assert changes is not None
    later = dict(state)
    for change in changes:
        if change.kind == "DELETED":
            del later[change.entry.key]
        else:
            later[change.entry.key] = change.entry.raw
    return later
