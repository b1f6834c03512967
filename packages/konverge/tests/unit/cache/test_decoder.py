"""What comes in: metadata read, managed fields cut out, everything else as it came."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import SharedFieldsEntry
from konverge.errors import DecodeError
from konverge.objects import Kind, Unstructured

POD = Kind("", "v1", "Pod", "pods")


def manager(name: str, **fields: Any) -> dict[str, Any]:
    return {"manager": name, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}


def test_the_facts_of_an_object_are_read_from_its_metadata() -> None:
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "uid-owner"}
    raw = widget(
        "a", 12, generation=3, labels={"app": "web"}, ownerReferences=[owner], deletionTimestamp="2026-01-01T00:00:00Z"
    )
    entry = Decoder(WIDGET).decode(raw)

    assert (entry.key, entry.uid, entry.version, entry.generation) == (at("a"), "uid-a", 12, 3)
    assert entry.label_map() == {"app": "web"}
    assert entry.owners == ("uid-owner",)
    assert entry.terminating
    assert entry.json == raw
    assert [reference.name for reference in entry.owner_references()] == ["o"]


def test_equal_labels_and_owners_are_held_once() -> None:
    intake = Decoder(WIDGET)
    one, other = (intake.decode(widget(name, 1, labels={"app": "web", "tier": "front"})) for name in "ab")
    assert one.labels is other.labels
    assert one.key.namespace is other.key.namespace


def test_of_managed_fields_only_our_own_stay() -> None:
    raw = widget("a", 1, managedFields=[manager("kubectl", a={}), manager("ours", b={}), manager("hpa", c={})], x=1)
    entry = Decoder(WIDGET, manager="ours").decode(raw)
    assert json.loads(entry.json)["metadata"]["managedFields"] == [manager("ours", b={})]


def applied_child(number: int) -> dict[str, Any]:
    uid = f"uid-owner-{number}"
    fields = {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{uid}"}}': {}}}, "f:spec": {"f:x": {}}}
    entry = manager("ours") | {"fieldsV1": fields, "time": f"2026-01-01T00:00:{number:02}Z"}
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": uid}
    return {"ownerReferences": [owner], "managedFields": [entry, manager("hpa")], "labels": {"n": str(number)}}


@pytest.mark.parametrize("listed", [False, True])
def test_what_children_of_one_sort_own_is_held_once_and_each_is_read_as_it_came(listed: bool) -> None:
    intake = Decoder(WIDGET, manager="ours")
    held = set()
    for number in range(50):
        raw = widget(f"c{number}", 1, **applied_child(number))
        document = json.loads(raw)
        if listed:
            raw = json.dumps({"metadata": document["metadata"], "spec": document.get("spec")}).encode()
        entry = intake.decode(raw.replace(b": ", b":").replace(b", ", b","))
        found = json.loads(entry.json)
        wanted = {k: v for k, v in document["metadata"]["managedFields"][0].items() if k != "time"}
        assert found["metadata"] == document["metadata"] | {"managedFields": [wanted]}
        assert found["kind"] == WIDGET.kind
        assert [owner.uid for owner in entry.owner_references()] == [f"uid-owner-{number}"]
        assert isinstance(entry, SharedFieldsEntry)
        held.add(id(entry.managed))
    assert len(held) == 1


def test_what_our_own_manager_did_not_apply_is_cut_out_too() -> None:
    updated = manager("ours", b={}) | {"operation": "Update"}
    of_status = manager("ours", b={}) | {"subresource": "status"}
    raw = widget("a", 1, managedFields=[updated, of_status], labels={"a": "b"})
    assert Decoder(WIDGET, manager="ours").decode(raw).json == widget("a", 1, labels={"a": "b"})


def test_labels_are_shared_by_objects_that_come_one_after_the_other() -> None:
    intake = Decoder(WIDGET)
    for number in range(2_000):
        intake.decode(widget(f"t{number}", 1, labels={"app": f"app-{number}"}))
    entries = [intake.decode(widget(f"t{number}", 2, labels={"app": f"app-{number // 10}"})) for number in range(2_000)]
    assert len({id(entry.labels) for entry in entries}) <= 201


@pytest.mark.parametrize("name", ["", "nobody", "our"])
def test_managed_fields_of_others_are_cut_out(name: str) -> None:
    raw = widget("a", 1, managedFields=[manager("ours", b={})], labels={"a": "b"})
    entry = Decoder(WIDGET, manager=name).decode(raw)
    assert entry.json == widget("a", 1, labels={"a": "b"})


def test_managed_fields_that_are_a_value_elsewhere_stay_where_they_are() -> None:
    fields = [manager("kubectl", a={})]
    spec = {"managedFields": fields, "template": {"metadata": {"managedFields": fields}}}
    annotations = {"note": '{"metadata":{"managedFields":[]}}', "managedFields": "x"}
    raw = widget("a", 1, annotations=annotations, managedFields=fields, spec=spec)
    found = json.loads(Decoder(WIDGET).decode(raw).json)
    assert found == json.loads(widget("a", 1, annotations=annotations, spec=spec))


keys = st.sampled_from(["labels", "annotations", "managedFields", "finalizers", "x"])
leaves = st.one_of(st.text(max_size=8), st.integers(), st.just('"managedFields":[]'), st.none())
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
managers = st.lists(st.builds(manager, st.sampled_from(["ours", "other", 'a"b'])), max_size=3)


@settings(max_examples=200, deadline=None)
@given(
    before=st.dictionaries(st.sampled_from(["alpha", "beta", "spec"]), trees, max_size=2),
    metadata=st.dictionaries(st.sampled_from(["x", "zz"]), trees, max_size=2),
    found=managers,
    separators=st.sampled_from([(",", ":"), (", ", ": ")]),
    ours=st.sampled_from(["", "ours", 'a"b']),
)
def test_the_cut_takes_the_managed_fields_and_nothing_else(
    before: Any, metadata: Any, found: Any, separators: Any, ours: str
) -> None:
    facts = {"name": "a", "uid": "u", "resourceVersion": "7"}
    document = {**before, "metadata": {**metadata, "managedFields": found, **facts}, "kind": "Widget", "tail": before}
    raw = json.dumps(document, separators=separators).encode()
    kept = [entry for entry in found if ours and entry["manager"] == ours]
    wanted = {**metadata, **facts} | ({"managedFields": kept} if kept else {})

    entry = Decoder(WIDGET, manager=ours).decode(raw)

    assert json.loads(entry.json) == document | {"metadata": wanted}


def test_an_item_of_a_list_is_told_what_it_is() -> None:
    item = b'{"metadata":{"name":"a","resourceVersion":"1","managedFields":[]},"spec":{}}'
    found = json.loads(Decoder(POD).decode(item).json)
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {},
    }


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"metadata":{}}',
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":7}}',
        b"\xff",
        b"{" * 2000,
    ],
)
def test_what_has_no_name_or_version_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        Decoder(WIDGET).decode(raw)


def test_a_refusal_shows_nothing_of_the_object() -> None:
    with pytest.raises(DecodeError) as caught:
        Decoder(WIDGET).decode(b'{"metadata":{"resourceVersion":"1"},"data":{"password":"hunter2"}}')
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "odd",
    [
        {"labels": {"app": 7}},
        {"labels": "x"},
        {"generation": "many"},
        {"ownerReferences": {"uid": 1}},
        {"uid": None, "generation": None},
        {"deletionTimestamp": 7},
        {"managedFields": "x"},
    ],
)
def test_whatever_else_is_odd_about_an_object_is_kept(odd: dict[str, Any]) -> None:
    entry = Decoder(WIDGET).decode(widget("a", 5, **odd))
    assert (entry.key, entry.version) == (at("a"), 5)


def test_metadata_only_keeps_nothing_else() -> None:
    raw = widget("a", 1, labels={"app": "web"}, spec={"big": "x" * 1000}, managedFields=[manager("kubectl")])
    found = json.loads(Decoder(WIDGET, metadata_only=True).decode(raw).json)
    assert "spec" not in found
    assert found["kind"] == "Widget"
    assert found["metadata"] == json.loads(widget("a", 1, labels={"app": "web"}))["metadata"]


def test_a_transform_changes_what_is_kept_in_place_or_by_what_it_gives() -> None:
    def without_spec(obj: Unstructured) -> None:
        del obj["spec"]

    def only_name(obj: Unstructured) -> dict[str, Any]:
        return {"metadata": {"name": obj.name}}

    raw = widget("a", 1, spec={"size": 3})
    assert "spec" not in json.loads(Decoder(WIDGET, transform=without_spec).decode(raw).json)
    entry = Decoder(WIDGET, transform=only_name).decode(raw)
    assert json.loads(entry.json) == {"metadata": {"name": "a"}}
    assert (entry.version, entry.uid) == (1, "uid-a"), "the facts are those of the object that came"


def test_a_transform_that_fails_leaves_the_object_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    def broken(obj: Unstructured) -> None:
        raise KeyError(obj.name)

    raw = widget("a", 1)
    with caplog.at_level(logging.ERROR, "konverge.cache"):
        assert Decoder(WIDGET, transform=broken).decode(raw).json == raw
    assert caplog.records[0].key == "shop/a"  # type: ignore[attr-defined]


def test_a_state_that_is_known_already_is_not_made_again() -> None:
    intake = Decoder(WIDGET)
    known = intake.decode(widget("a", 3))
    assert intake.decode(widget("a", 3), lambda _: known) is known
    assert intake.decode(widget("a", 4), lambda _: known) is not known
    assert intake.decode(widget("a", 3, uid="other"), lambda _: known) is not known


def test_what_is_read_is_the_readers_own() -> None:
    entry = Decoder(WIDGET).decode(widget("a", 1, labels={"app": "web"}, spec={"size": 3}))
    mine = entry.read(Unstructured)
    mine["spec"]["size"] = 4
    mine.metadata["labels"]["app"] = "db"
    entry.label_map()["app"] = "db"
    assert entry.read(Unstructured)["spec"] == {"size": 3}
    assert entry.label_map() == {"app": "web"}
