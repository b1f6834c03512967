"""The last applied states: one for each object, and not many more than there are objects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind
from konverge.reconcile.last_applied import AppliedState, LastApplied, hash_json

GADGET = Kind("example.com", "v1", "Gadget", "gadgets")


def state(uid: str = "u") -> AppliedState:
    return AppliedState(uid, b"desired", b"values", "1")


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
