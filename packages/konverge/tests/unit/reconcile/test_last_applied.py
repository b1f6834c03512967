"""The last applied states: one for each object, and not many more than there are objects."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind
from konverge.reconcile.changed_fields import hash_content_and_status
from konverge.reconcile.last_applied import AppliedState, LastApplied, hash_bytes, hash_json, hash_without_status

GADGET = Kind("example.com", "v1", "Gadget", "gadgets")


def state(uid: str = "u") -> AppliedState:
    return AppliedState(uid, b"desired", "1", b"values")


def test_a_recreated_object_has_no_state() -> None:
    last_applied = LastApplied()
    last_applied.set(GADGET, Key("a", "b"), state("old"), is_gone=lambda *_: False)
    assert last_applied.get(GADGET, Key("a", "b"), uid="old") == state("old")
    assert last_applied.get(GADGET, Key("a", "b"), uid="new") is None
    last_applied.forget(GADGET, Key("a", "b"))
    last_applied.forget(GADGET, Key("a", "b"))
    assert len(last_applied) == 0


def test_hashes_do_not_depend_on_the_order_of_keys() -> None:
    assert hash_json({"a": 1, "b": [1, 2]}) == hash_json({"b": [1, 2], "a": 1})
    assert hash_json({"a": 1, "b": [1, 2]}) != hash_json({"a": 1, "b": [2, 1]})
    assert hash_json({"a": 1}) != hash_json({"a": True})
    assert hash_json({"a": None}) != hash_json({})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=300))
def test_it_holds_the_existing_objects_and_at_most_as_many_others(changes: list[tuple[bool, int]]) -> None:
    last_applied = LastApplied(unchecked=0)
    existing: set[Key] = set()
    most = 0
    for created, number in changes:
        key = Key("", str(number))
        if created:
            existing.add(key)
            most = max(most, len(existing))
            last_applied.set(GADGET, key, state(), is_gone=lambda _, one: one not in existing)
        else:
            existing.discard(key)
    assert len(last_applied) <= 2 * most + 1
    assert all(last_applied.get(GADGET, key, uid="u") for key in existing)


def test_states_of_deleted_objects_do_not_accumulate() -> None:
    last_applied = LastApplied(unchecked=0)
    lasting = {Key("", f"lasting-{number}") for number in range(50)}
    for key in lasting:
        last_applied.set(GADGET, key, state(), is_gone=lambda *_: False)
    for number in range(5000):
        key = Key("", f"passing-{number}")
        last_applied.set(GADGET, key, state(), is_gone=lambda _, one: one not in lasting)
    assert len(last_applied) <= 2 * len(lasting) + 2


def test_up_to_a_number_of_states_nothing_is_checked() -> None:
    last_applied = LastApplied(unchecked=3)
    checked: list[Key] = []

    def is_gone(_: object, key: Key) -> bool:
        checked.append(key)
        return True

    for number in range(4):
        assert not checked
        last_applied.set(GADGET, Key("", str(number)), state(), is_gone=is_gone)
    assert checked == [Key("", "0"), Key("", "1")]
    assert len(last_applied) == 2


def test_a_hash_without_status_differs_with_everything_but_status_and_version() -> None:
    def hashed(**change: object) -> bytes:
        document = {"kind": "Gadget", "metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"a": 1}, "status": 1}
        return hash_without_status(json.dumps({**document, **change}).encode())

    same = hashed()
    assert hashed(status={"ready": True}) == same
    assert hashed(metadata={"name": "a", "resourceVersion": "2"}) == same
    assert hashed(metadata={"name": "a"}) == same
    assert hashed(metadata={"name": "b"}) != same
    assert hashed(metadata={"name": "a", "labels": {}}) != same
    assert hashed(spec={"a": 2}) != same
    assert hashed(data=1) != same
    assert hash_without_status(b'{"metadata":{"name":"a"}}') != hash_without_status(b'{"metadata":{"nama":"e"}}')


def test_hashes_are_sixteen_bytes() -> None:
    document = b'{"metadata":{"name":"a"},"status":{"x":1}}'
    hashes = (hash_bytes(b""), hash_json({}), hash_without_status(document), *hash_content_and_status(document))
    assert [len(one) for one in hashes] == [16] * 5


def test_content_and_status_have_separate_hashes() -> None:
    def hashed(**change: object) -> tuple[bytes, bytes]:
        metadata = {"name": "a", "resourceVersion": "1", "generation": 1, "uid": "u"}
        return hash_content_and_status({"metadata": metadata, "spec": 1, "status": {"x": 1}, **change})

    content, status = hashed()
    assert hashed(status={"x": 2})[0] == content
    assert hashed(status={"x": 2})[1] != status
    assert hashed(spec=2)[0] != content
    assert hashed(spec=2)[1] == status
    assert hashed(metadata={"name": "a", "managedFields": []})[0] == content
    assert hashed(metadata={"name": "b"})[0] != content
    assert hash_content_and_status(b'{"spec":1}') == hash_content_and_status({"spec": 1})
