"""The memory of applies: of one object each, and no more of them than there are objects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind
from konverge.reconcile.memo import Memo, Memory, hash_of

THING = Kind("example.com", "v1", "Thing", "things")


def memo(uid: str = "u") -> Memo:
    return Memo(uid, b"wanted", b"values", "1")


def test_an_object_made_anew_is_not_remembered() -> None:
    memory = Memory()
    memory.remember(THING, Key("a", "b"), memo("old"), is_gone=lambda *_: False)
    assert memory.recall(THING, Key("a", "b"), uid="old") == memo("old")
    assert memory.recall(THING, Key("a", "b"), uid="new") is None
    memory.forget(THING, Key("a", "b"))
    memory.forget(THING, Key("a", "b"))
    assert len(memory) == 0


def test_hashes_are_those_of_values_and_not_of_their_order() -> None:
    assert hash_of({"a": 1, "b": [1, 2]}) == hash_of({"b": [1, 2], "a": 1})
    assert hash_of({"a": 1, "b": [1, 2]}) != hash_of({"a": 1, "b": [2, 1]})
    assert hash_of({"a": 1}) != hash_of({"a": True})
    assert hash_of({"a": None}) != hash_of({})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=300))
def test_it_holds_what_lives_and_at_most_as_much_again(happenings: list[tuple[bool, int]]) -> None:
    memory = Memory()
    alive: set[Key] = set()
    most = 0
    for made, number in happenings:
        key = Key("", str(number))
        if made:
            alive.add(key)
            most = max(most, len(alive))
            memory.remember(THING, key, memo(), is_gone=lambda _, one: one not in alive)
        else:
            alive.discard(key)
    assert len(memory) <= 2 * most + 1
    assert all(memory.recall(THING, key, uid="u") for key in alive)


def test_objects_that_come_and_go_for_ever_leave_nothing_behind() -> None:
    memory = Memory()
    lasting = {Key("", f"lasting-{number}") for number in range(50)}
    for key in lasting:
        memory.remember(THING, key, memo(), is_gone=lambda *_: False)
    for number in range(5000):
        key = Key("", f"passing-{number}")
        memory.remember(THING, key, memo(), is_gone=lambda _, one: one not in lasting)
    assert len(memory) <= 2 * len(lasting) + 2
