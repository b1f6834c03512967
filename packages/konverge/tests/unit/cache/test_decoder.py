"""The decoder: metadata is decoded, managedFields are dropped, everything else is unchanged."""

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


def test_the_fields_of_an_entry_come_from_the_metadata() -> None:
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


def test_equal_labels_and_owners_are_stored_once() -> None:
    decoder = Decoder(WIDGET)
    one, other = (decoder.decode(widget(name, 1, labels={"app": "web", "tier": "front"})) for name in "ab")
    assert one.labels is other.labels
    assert one.key.namespace is other.key.namespace


def test_only_own_managed_fields_are_stored() -> None:
    raw = widget("a", 1, managedFields=[manager("kubectl", a={}), manager("ours", b={}), manager("hpa", c={})], x=1)
    entry = Decoder(WIDGET, manager="ours").decode(raw)
    assert json.loads(entry.json)["metadata"]["managedFields"] == [manager("ours", b={})]


def test_own_managed_fields_are_stored_with_what_a_transform_leaves() -> None:
    def without_spec(obj: Unstructured) -> None:
        del obj["spec"]

    raw = widget("a", 1, managedFields=[manager("kubectl", a={}), manager("ours", b={})], spec={"x": 1})
    expected = json.loads(widget("a", 1, managedFields=[manager("ours", b={})]))
    entry = Decoder(WIDGET, manager="ours", transform=without_spec).decode(raw)
    assert json.loads(entry.json)["metadata"] == expected["metadata"]
    assert "spec" not in json.loads(entry.json)
    metadata_only = Decoder(WIDGET, manager="ours", metadata_only=True).decode(raw)
    assert json.loads(metadata_only.json)["metadata"] == expected["metadata"]


def applied_child(number: int) -> dict[str, Any]:
    uid = f"uid-owner-{number}"
    fields = {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{uid}"}}': {}}}, "f:spec": {"f:x": {}}}
    entry = manager("ours") | {"fieldsV1": fields, "time": f"2026-01-01T00:00:{number:02}Z"}
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": uid}
    return {"ownerReferences": [owner], "managedFields": [entry, manager("hpa")], "labels": {"n": str(number)}}


@pytest.mark.parametrize("listed", [False, True])
def test_managed_fields_of_similar_children_are_stored_once_and_each_child_reads_as_it_arrived(listed: bool) -> None:
    decoder = Decoder(WIDGET, manager="ours")
    held = set()
    for number in range(50):
        raw = widget(f"c{number}", 1, **applied_child(number))
        document = json.loads(raw)
        if listed:
            raw = json.dumps({"metadata": document["metadata"], "spec": document.get("spec")}).encode()
        entry = decoder.decode(raw.replace(b": ", b":").replace(b", ", b","))
        found = json.loads(entry.json)
        expected = {k: v for k, v in document["metadata"]["managedFields"][0].items() if k != "time"}
        assert found["metadata"] == document["metadata"] | {"managedFields": [expected]}
        assert found["kind"] == WIDGET.kind
        assert [owner.uid for owner in entry.owner_references()] == [f"uid-owner-{number}"]
        assert isinstance(entry, SharedFieldsEntry)
        held.add(id(entry.managed))
    assert len(held) == 1


def test_own_managed_fields_that_were_not_applied_are_dropped_too() -> None:
    updated = manager("ours", b={}) | {"operation": "Update"}
    of_status = manager("ours", b={}) | {"subresource": "status"}
    raw = widget("a", 1, managedFields=[updated, of_status], labels={"a": "b"})
    assert Decoder(WIDGET, manager="ours").decode(raw).json == widget("a", 1, labels={"a": "b"})


def test_consecutive_objects_share_their_labels() -> None:
    decoder = Decoder(WIDGET)
    for number in range(2_000):
        decoder.decode(widget(f"t{number}", 1, labels={"app": f"app-{number}"}))
    entries = [
        decoder.decode(widget(f"t{number}", 2, labels={"app": f"app-{number // 10}"})) for number in range(2_000)
    ]
    assert len({id(entry.labels) for entry in entries}) <= 201


@pytest.mark.parametrize("name", ["", "nobody", "our"])
def test_managed_fields_of_other_managers_are_dropped(name: str) -> None:
    raw = widget("a", 1, managedFields=[manager("ours", b={})], labels={"a": "b"})
    entry = Decoder(WIDGET, manager=name).decode(raw)
    assert entry.json == widget("a", 1, labels={"a": "b"})


def test_a_value_that_looks_like_managed_fields_is_not_changed() -> None:
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
    own=st.sampled_from(["", "ours", 'a"b']),
)
def test_dropping_managed_fields_changes_nothing_else(
    before: Any, metadata: Any, found: Any, separators: Any, own: str
) -> None:
    facts = {"name": "a", "uid": "u", "resourceVersion": "7"}
    document = {**before, "metadata": {**metadata, "managedFields": found, **facts}, "kind": "Widget", "tail": before}
    raw = json.dumps(document, separators=separators).encode()
    own_fields = [entry for entry in found if own and entry["manager"] == own]
    expected = {**metadata, **facts} | ({"managedFields": own_fields} if own_fields else {})

    entry = Decoder(WIDGET, manager=own).decode(raw)

    assert json.loads(entry.json) == document | {"metadata": expected}


def test_list_items_get_their_kind_and_api_version() -> None:
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
def test_an_object_without_a_name_or_version_is_rejected(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        Decoder(WIDGET).decode(raw)


def test_a_decode_error_contains_no_value_of_the_object() -> None:
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
def test_other_malformed_objects_are_stored_as_they_are(odd: dict[str, Any]) -> None:
    entry = Decoder(WIDGET).decode(widget("a", 5, **odd))
    assert (entry.key, entry.version) == (at("a"), 5)


def test_what_is_readable_of_malformed_metadata_is_used() -> None:
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "uid-owner"}
    good: dict[str, Any] = {"labels": {"app": "web"}, "ownerReferences": [owner]}
    managed = [manager("ours", b={}), manager("kubectl")]
    raw = widget("a", 5, generation="many", deletionTimestamp="2026-01-01T00:00:00Z", managedFields=managed, **good)
    entry = Decoder(WIDGET, manager="ours").decode(raw)

    assert (entry.key, entry.uid, entry.version, entry.generation) == (at("a"), "uid-a", 5, 0)
    assert (entry.label_map(), entry.owners, entry.terminating) == ({"app": "web"}, ("uid-owner",), True)
    assert json.loads(entry.json)["metadata"]["managedFields"] == [manager("ours", b={})]
    assert not Decoder(WIDGET).decode(widget("a", 5, generation="many")).terminating
    assert Decoder(WIDGET).decode(widget("a", 5, generation="many")).json == widget("a", 5, generation="many")


def test_the_error_for_an_unreadable_object_names_its_kind_and_where() -> None:
    with pytest.raises(DecodeError, match=r"^Widget without readable metadata: ") as unreadable:
        Decoder(WIDGET).decode(b'{"metadata":7}')
    with pytest.raises(DecodeError, match=r"^Widget without a name or a resourceVersion$") as nameless:
        Decoder(WIDGET).decode(b'{"metadata":{"name":"a"}}')
    assert unreadable.value.path == nameless.value.path == ".metadata"


def test_without_an_order_of_versions_any_version_is_a_text_and_none_is_needed() -> None:
    unordered = Decoder(WIDGET, ordered=False)
    assert unordered.decode(widget("a", 12)).version == "12"
    assert unordered.decode(b'{"metadata":{"name":"a"}}').version == ""


def test_metadata_only_stores_nothing_else() -> None:
    raw = widget("a", 1, labels={"app": "web"}, spec={"big": "x" * 1000}, managedFields=[manager("kubectl")])
    found = json.loads(Decoder(WIDGET, metadata_only=True).decode(raw).json)
    assert "spec" not in found
    assert found["kind"] == "Widget"
    assert found["metadata"] == json.loads(widget("a", 1, labels={"app": "web"}))["metadata"]


def test_a_transform_changes_the_object_in_place_or_returns_another() -> None:
    def without_spec(obj: Unstructured) -> None:
        del obj["spec"]

    def only_name(obj: Unstructured) -> dict[str, Any]:
        return {"metadata": {"name": obj.name}}

    raw = widget("a", 1, spec={"size": 3})
    assert "spec" not in json.loads(Decoder(WIDGET, transform=without_spec).decode(raw).json)
    entry = Decoder(WIDGET, transform=only_name).decode(raw)
    assert json.loads(entry.json) == {"metadata": {"name": "a"}}
    assert (entry.version, entry.uid) == (1, "uid-a"), "the facts are those of the object that came"


def test_a_transform_that_fails_leaves_the_object_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(obj: Unstructured) -> None:
        raise KeyError(obj.name)

    raw = widget("a", 1)
    with caplog.at_level(logging.ERROR, "konverge.cache"):
        assert Decoder(WIDGET, transform=broken).decode(raw).json == raw
    assert caplog.records[0].key == "shop/a"  # type: ignore[attr-defined]


def test_a_known_state_reuses_its_entry() -> None:
    decoder = Decoder(WIDGET)
    known = decoder.decode(widget("a", 3))
    assert decoder.decode(widget("a", 3), lambda _: known) is known
    assert decoder.decode(widget("a", 4), lambda _: known) is not known
    assert decoder.decode(widget("a", 3, uid="other"), lambda _: known) is not known


def test_every_read_returns_a_new_object() -> None:
    entry = Decoder(WIDGET).decode(widget("a", 1, labels={"app": "web"}, spec={"size": 3}))
    mine = entry.read(Unstructured)
    mine["spec"]["size"] = 4
    mine.metadata["labels"]["app"] = "db"
    entry.label_map()["app"] = "db"
    assert entry.read(Unstructured)["spec"] == {"size": 3}
    assert entry.label_map() == {"app": "web"}
