from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.codec import decode
from konverge.objects.edits import difference, full_object, full_object_bytes, is_changed, merge_patch
from konverge.objects.kinds import Kind
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource, Unstructured


class Slot(Model):
    name: str | None = None
    size: int | None = None


class RackSpec(Model):
    slots: list[Slot] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    height: int = 1
    cooling: Slot | None = None


class RackStatus(Model):
    used: int | None = None


class Rack(Resource, identity=Kind("ex.io", "v1", "Rack", "racks")):
    spec: RackSpec = field(default_factory=RackSpec)
    status: RackStatus = field(default_factory=RackStatus)


def rack(wire: dict[str, Any]) -> Rack:
    return decode(Rack, json.dumps(wire).encode())


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch as in RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def test_an_object_without_edits_is_written_unchanged() -> None:
    wire = {"kind": "Rack", "spec": {"height": 1, "new": [1.0, None], "slots": []}, "extra": {"a": None}}
    assert full_object(rack(wire)) == wire
    assert difference(rack(wire)) == {}


def test_fields_the_class_does_not_know_survive_an_edit_beside_them() -> None:
    thing = rack({"metadata": {"name": "a", "later": 1}, "spec": {"height": 2, "width": 3}, "extra": 1})
    thing.spec.height = 4
    assert is_changed(thing)
    assert difference(thing) == {"spec": {"height": 4}}
    assert full_object(thing) == {"metadata": {"name": "a", "later": 1}, "spec": {"height": 4, "width": 3}, "extra": 1}


def test_unknown_fields_follow_their_item_when_a_list_is_reordered_and_edited() -> None:
    thing = rack({"spec": {"slots": [{"name": "a", "u": 1}, {"name": "b", "u": 2}, {"name": "c", "u": 3}]}})
    thing.spec.slots = [thing.spec.slots[2], Slot(name="new"), thing.spec.slots[0]]
    thing.spec.slots[2].size = 9
    assert difference(thing) == {
        "spec": {"slots": [{"name": "c", "u": 3}, {"name": "new"}, {"name": "a", "u": 1, "size": 9}]}
    }


def test_items_without_a_name_are_matched_by_equality_and_index() -> None:
    thing = rack({"spec": {"slots": [{"size": 1, "u": 1}, {"size": 2, "u": 2}]}})
    thing.spec.slots[0].size = 5
    assert full_object(thing)["spec"]["slots"] == [{"size": 5, "u": 1}, {"size": 2, "u": 2}]
    del thing.spec.slots[0]
    assert full_object(thing)["spec"]["slots"] == [{"size": 2, "u": 2}]


def test_a_removed_field_is_null_in_the_patch() -> None:
    thing = rack({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"cooling": {"name": "fan", "u": 1}}})
    del thing.metadata.labels["a"]
    thing.spec.cooling = None
    assert difference(thing) == {"metadata": {"labels": {"a": None}}, "spec": {"cooling": None}}


def test_a_value_set_back_to_its_default_is_an_edit() -> None:
    thing = rack({"spec": {"height": 7}})
    thing.spec.height = 1
    assert difference(thing) == {"spec": {"height": None}}


def test_a_default_that_was_not_on_the_wire_is_not_written() -> None:
    thing = rack({"metadata": {"name": "a"}})
    thing.metadata.labels["x"] = "y"
    assert difference(thing) == {"metadata": {"labels": {"x": "y"}}}


def test_the_order_of_a_set_is_no_difference() -> None:
    thing = rack({"spec": {"tags": ["z", "a", "m"]}})
    thing.spec.tags = {"m", "z", "a"}
    assert difference(thing) == {}
    assert not is_changed(thing)


def test_an_object_that_was_not_decoded_has_no_difference() -> None:
    with pytest.raises(ValueError, match="Rack a was not read from the server"):
        difference(Rack(metadata=ObjectMeta(name="a")))
    assert full_object(Unstructured(kind="X")) == {"kind": "X"}
    assert full_object_bytes(Unstructured(kind="X")) == b'{"kind":"X"}'
    assert is_changed(Rack(metadata=ObjectMeta(name="a")))


scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
documents = st.dictionaries(st.sampled_from(["spec", "extra", "status", "x"]), values, max_size=4)
slots = st.lists(
    st.fixed_dictionaries({}, optional={"name": st.sampled_from("abc"), "size": st.integers(0, 3), "u": values}),
    max_size=4,
)


@given(st.fixed_dictionaries({"spec": st.fixed_dictionaries({"slots": slots}, optional={"w": values})}))
def test_every_object_without_edits_is_written_unchanged(wire: dict[str, Any]) -> None:
    assert full_object(rack(wire)) == wire
    assert json.loads(full_object_bytes(rack(wire))) == wire
    assert not is_changed(rack(wire))


@given(slots, slots)
def test_the_class_reads_back_what_was_edited(old: list[Any], new: list[Any]) -> None:
    thing = rack({"spec": {"slots": old, "w": 1}})
    thing.spec.slots = rack({"spec": {"slots": new}}).spec.slots
    written = full_object(thing)
    assert is_changed(thing) or not difference(thing)
    assert is_changed(thing) or written["spec"]["slots"] == old
    assert json.loads(full_object_bytes(thing)) == written
    assert rack(written).spec == thing.spec
    assert written["spec"]["w"] == 1


@given(documents, documents)
def test_a_merge_patch_leads_from_old_to_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    def no_nulls(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: no_nulls(item) for key, item in value.items() if item is not None}
        return value

    new = no_nulls(new)  # a merge patch cannot say null
    before = copy.deepcopy(old)
    patched = apply_merge_patch(old, merge_patch(old, new))
    assert json.dumps(patched, sort_keys=True) == json.dumps(new, sort_keys=True)
    assert old == before
