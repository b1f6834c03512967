"""The decoder at its limits: the sizes of its pools, unusual documents, and what errors say."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry, SharedFieldsEntry
from konverge.errors import DecodeError
from konverge.objects import decode_unstructured


def applied(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"manager": "ours", "operation": "Apply", "fieldsV1": fields} | more


def entry_of(raw: bytes, *, written: bool, **options: Any) -> Entry:
    """Decode a document; with `written`, as the response of a write, which is decoded already."""
    return Decoder(WIDGET, **options).decode(raw, document=decode_unstructured(raw) if written else None)


# Pools


def test_a_pool_holds_512_labels_and_the_last_one_as_many() -> None:
    decoder = Decoder(WIDGET)
    labels = [{"n": str(number)} for number in range(511)]  # objects without owners have one place too
    first = decoder.decode(widget("a", 1, labels=labels[0]))
    for one in labels:
        decoder.decode(widget("a", 1, labels=one))
    assert (len(decoder._pool), len(decoder._previous_pool)) == (512, 0)
    decoder.decode(widget("a", 1, labels={"n": "511"}))
    assert len(decoder._previous_pool) == 512
    again = decoder.decode(widget("a", 2, labels=labels[0]))
    assert again.labels is first.labels, "found in the previous pool"
    assert len(decoder._pool) < 10


def test_written_objects_add_up_to_512_labels_to_a_pool() -> None:
    decoder = Decoder(WIDGET)
    for number in range(600):
        raw = widget("a", 1, labels={"n": str(number)})
        entry = decoder.decode(raw, document=decode_unstructured(raw))
        assert entry.label_map() == {"n": str(number)}
        assert len(decoder._pool) <= 512


def test_managed_fields_of_512_sorts_are_shared() -> None:
    decoder = Decoder(WIDGET, manager="ours")

    def decode(number: int) -> SharedFieldsEntry:
        entry = decoder.decode(widget("a", 1, managedFields=[applied({f"f:{number}": {}})]))
        assert isinstance(entry, SharedFieldsEntry)
        return entry

    first = decode(0)
    for number in range(512):
        decode(number)
    assert len(decoder._managed) == 512
    assert decode(0).managed is not first.managed, "the pool was full"
    assert len(decoder._managed) == 1


# Managed fields


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(
    "entry",
    [
        {"time": "T", **applied({"f:a": {}})},
        {**applied({"f:a": {}}), "time": "T"},
        {"manager": "ours", "time": "T", "operation": "Apply", "fieldsV1": {"time": "T", "x": 1}},
    ],
)
def test_only_the_time_of_an_entry_is_dropped(entry: dict[str, Any], written: bool) -> None:
    raw = widget("a", 1, managedFields=[entry])
    found = json.loads(entry_of(raw, written=written, manager="ours").json)
    assert found["metadata"]["managedFields"] == [{name: value for name, value in entry.items() if name != "time"}]


@pytest.mark.parametrize("written", [False, True])
def test_an_entry_without_a_time_is_stored_as_it_is(written: bool) -> None:
    raw = widget("a", 1, managedFields=[applied({"f:a": {}})])
    assert entry_of(raw, written=written, manager="ours").json == raw


@pytest.mark.parametrize("written", [False, True])
def test_all_own_entries_are_stored_in_their_order(written: bool) -> None:
    entries = [applied({"f:b": {}}, apiVersion="v2"), applied({"f:a": {}}, manager="x"), applied({"f:a": {}})]
    raw = widget("a", 1, managedFields=entries)
    found = json.loads(entry_of(raw, written=written, manager="ours").json)
    assert found["metadata"]["managedFields"] == [entries[0], entries[2]]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("odd", [{"operation": "Update"}, {"subresource": "status"}, {"manager": "theirs"}])
def test_entries_that_are_no_own_apply_are_dropped(odd: dict[str, str], written: bool) -> None:
    note: dict[str, Any] = {"annotations": {"by": "ours"}}
    raw = widget("a", 1, managedFields=[applied({"f:a": {}}, **odd), {"manager": "x", "by": "ours"}], **note)
    entry = entry_of(raw, written=written, manager="ours")
    assert type(entry) is Entry
    assert entry.json == widget("a", 1, **note)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("place", ["first", "last", "alone"])
def test_managed_fields_are_cut_out_wherever_they_are(place: str, written: bool) -> None:
    facts = {"name": "a", "uid": "u", "resourceVersion": "7"}
    managed = {"managedFields": [applied({}, manager="x")]}
    metadata = managed | facts if place == "first" else facts | managed
    raw = msgspec.json.encode({"kind": "Widget", "metadata": metadata, "spec": {"a": 1}})
    assert entry_of(raw, written=written).json == msgspec.json.encode(
        {"kind": "Widget", "metadata": facts, "spec": {"a": 1}}
    )


def test_own_fields_of_a_child_are_stored_with_a_place_for_its_owner() -> None:
    owner = {"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "uid-owner"}
    raw = widget("a", 1, ownerReferences=[owner], managedFields=[applied({'k:{"uid":"uid-owner"}': {}})])
    entry = Decoder(WIDGET, manager="ours").decode(raw)
    assert isinstance(entry, SharedFieldsEntry)
    assert b"uid-owner" not in entry.managed
    assert entry.managed.count(b"\0") == 1
    assert entry.json == raw


def test_own_fields_are_stored_inside_of_an_object_that_is_compressed_or_transformed() -> None:
    raw = widget("a", 1, managedFields=[applied({"f:a": {}})])
    entry = Decoder(WIDGET, manager="ours", transform=lambda obj: None).decode(raw)
    assert type(entry) is Entry
    assert json.loads(entry.json) == json.loads(raw)


@pytest.mark.parametrize("managed", ["x", [7], [{"manager": 7}], {"manager": "ours"}])
def test_managed_fields_that_are_unreadable_are_dropped(managed: Any) -> None:
    raw = widget("a", 1, managedFields=managed, annotations={"by": "ours"})
    for written in (False, True):
        entry = entry_of(raw, written=written, manager="ours")
        assert (entry.key, "managedFields" in json.loads(entry.json)["metadata"]) == (at("a"), False)


def test_an_item_with_own_fields_and_without_a_kind_reads_as_it_arrived() -> None:
    metadata = {"name": "a", "resourceVersion": "1", "managedFields": [applied({"f:a": {}})], "uid": "u"}
    item = b" " + msgspec.json.encode({"metadata": metadata, "spec": {"x": 1}})
    entry = Decoder(WIDGET, manager="ours").decode(item)
    assert isinstance(entry, SharedFieldsEntry)
    assert json.loads(entry.json) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": {"x": 1},
    }


# Responses that are decoded already


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"generation": 3},
        {"labels": {"a": "b", "c": "d"}},
        {"labels": {}},
        {"ownerReferences": []},
        {"ownerReferences": [{"uid": "u1"}, {"name": "without"}, {"uid": ""}, {"uid": "u2"}]},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"deletionTimestamp": None},
        {"managedFields": []},
        {"managedFields": None},
    ],
)
def test_the_entry_of_a_response_is_that_of_its_bytes(more: dict[str, Any]) -> None:
    raw = widget("a", 12, **more)
    read, written = entry_of(raw, written=False), entry_of(raw, written=True)
    assert written == read
    assert (written.key, written.uid, written.version) == (at("a"), "uid-a", 12)
    assert written.generation == more.get("generation", 0)
    assert written.terminating is bool(more.get("deletionTimestamp"))


def test_a_response_without_a_namespace_and_a_kind_gets_the_kind() -> None:
    raw = b'{"metadata":{"name":"a","resourceVersion":"12","uid":"u"}}'
    entry = entry_of(raw, written=True)
    assert entry.key == at("a", "")
    assert entry == entry_of(raw, written=False)
    assert json.loads(entry.json)["kind"] == "Widget"


def test_written_objects_have_their_own_labels_and_owners() -> None:
    decoder = Decoder(WIDGET)
    for number in range(3):
        owner = {"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": f"owner-{number}"}
        raw = widget("a", 1, labels={"n": str(number)}, ownerReferences=[owner])
        entry = decoder.decode(raw, document=decode_unstructured(raw))
        assert (entry.label_map(), entry.owners) == ({"n": str(number)}, (f"owner-{number}",))
        assert [one.uid for one in entry.owner_references()] == [f"owner-{number}"]


@pytest.mark.parametrize("text", [b'"managedFields":[ ]', b'"note":"\\"managedFields\\":"'])
def test_a_response_with_unusual_text_is_decoded_from_its_bytes(text: bytes) -> None:
    raw = b'{"kind":"Widget","metadata":{"name":"a","resourceVersion":"12","uid":"u",%b}}' % text
    assert entry_of(raw, written=True) == entry_of(raw, written=False)


# Errors


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"metadata":7}', "Expected object, got int - at $.metadata"),
        (b'{"metadata":{}}', None),
        (b"{", "DecodeError"),
        (b"\xff", "DecodeError"),
    ],
)
def test_the_error_for_unreadable_metadata_says_what_was_expected(raw: bytes, reason: str | None) -> None:
    text = "Widget without a name or a resourceVersion"
    if reason is not None:
        text = f"Widget without readable metadata: {reason}"
    with pytest.raises(DecodeError, match=f"^{re.escape(text)}$") as caught:
        Decoder(WIDGET).decode(raw)
    assert caught.value.path == ".metadata"


def test_a_kind_that_is_no_text_is_replaced() -> None:
    entry = Decoder(WIDGET).decode(b'{"kind":7,"metadata":{"name":"a","resourceVersion":"12"}}')
    assert entry.json.startswith(b'{"apiVersion":"example.com/v1","kind":"Widget",')


def test_odd_metadata_counts_as_missing_field_by_field() -> None:
    odd = {"namespace": 7, "uid": 7, "generation": "x", "labels": "x", "ownerReferences": 7, "deletionTimestamp": None}
    metadata = {"name": "a", "resourceVersion": "12"} | odd
    entry = Decoder(WIDGET).decode(msgspec.json.encode({"kind": "Widget", "metadata": metadata}))
    assert (entry.key, entry.uid, entry.version, entry.generation) == (at("a", ""), "", 12, 0)
    assert (entry.labels, entry.owners, entry.terminating) == ((), (), False)
