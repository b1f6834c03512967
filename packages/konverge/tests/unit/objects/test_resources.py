from __future__ import annotations

import copy

import pytest

from konverge.errors import DecodeError
from konverge.objects.codec import decode, decode_list, decode_unstructured, encode, from_wire, to_wire
from konverge.objects.edits import difference, full_object
from konverge.objects.keys import Key
from konverge.objects.kinds import Kind, Scope, split_api_version
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field, replace
from konverge.objects.resources import Resource, Unstructured, kind_of, same_object

LAMP = Kind("ex.io", "v1", "Lamp", "lamps")


class LampSpec(Model):
    watts: int = 5
    rooms: list[str] = field(default_factory=list)


class LampStatus(Model):
    lit: bool | None = None


class Lamp(Resource, identity=LAMP):
    spec: LampSpec
    status: LampStatus = field(default_factory=LampStatus)


def test_api_version_and_kind_are_always_written() -> None:
    lamp = Lamp(metadata=ObjectMeta(name="a"), spec=LampSpec(watts=7))
    assert encode(lamp) == b'{"apiVersion":"ex.io/v1","kind":"Lamp","metadata":{"name":"a"},"spec":{"watts":7}}'


def test_items_of_lists_come_without_kind_and_have_it_all_the_same() -> None:
    lamp = decode(Lamp, b'{"metadata":{"namespace":"n","name":"a"},"spec":{}}')
    assert (lamp.api_version, lamp.kind, lamp.key) == ("ex.io/v1", "Lamp", Key("n", "a"))


def test_the_status_is_never_none_and_an_empty_one_is_not_encoded() -> None:
    lamp = Lamp(spec=LampSpec())
    assert lamp.status.lit is None
    assert b"status" not in encode(lamp)
    lamp.status.lit = False
    assert encode(lamp).endswith(b'"status":{"lit":false}}')


def test_typed_and_unstructured_objects_have_the_same_properties() -> None:
    wire = b'{"apiVersion":"ex.io/v1","kind":"Lamp","metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{}}'
    typed, untyped = decode(Lamp, wire), decode_unstructured(wire)
    for question in ("api_version", "kind", "key", "name", "namespace", "uid", "resource_version"):
        assert getattr(typed, question) == getattr(untyped, question)
    assert same_object(typed, untyped)
    assert to_wire(untyped) == untyped


def test_an_unstructured_object_is_a_dict_that_can_be_empty() -> None:
    thing = Unstructured()
    assert (thing.kind, thing.key) == ("", Key("", ""))
    thing.metadata["name"] = "a"
    assert thing == {"metadata": {"name": "a"}}


def test_a_kind_says_its_names() -> None:
    assert (LAMP.api_version, LAMP.resource, str(LAMP)) == ("ex.io/v1", "lamps.ex.io", "Lamp.ex.io/v1")
    pod = Kind("", "v1", "Pod", "pods")
    assert (pod.api_version, pod.resource, pod.namespaced) == ("v1", "pods", True)
    assert not Kind("", "v1", "Node", "nodes", Scope.CLUSTER).namespaced
    assert split_api_version("apps/v1") == ("apps", "v1")
    assert split_api_version("v1") == ("", "v1")


def test_the_kind_of_a_class_an_object_and_a_kind() -> None:
    assert kind_of(Lamp) == kind_of(Lamp(spec=LampSpec())) == kind_of(LAMP) == LAMP
    with pytest.raises(TypeError, match=r"has no kind .use a class of konverge\.k8s"):
        kind_of(Resource)


def test_copies_keep_the_source_and_share_nothing_else() -> None:
    lamp = decode(Lamp, b'{"spec":{"rooms":["hall"]}}')
    clone = copy.deepcopy(lamp)
    clone.spec.rooms.append("attic")
    assert lamp.spec.rooms == ["hall"]
    assert clone.source is copy.copy(lamp).source is lamp.source


def test_a_changed_copy_keeps_the_fields_that_its_class_does_not_know() -> None:
    lamp = decode(Lamp, b'{"metadata":{"name":"hall"},"spec":{"watts":3,"color":"red"}}')
    changed = replace(lamp, spec=replace(lamp.spec, watts=4))
    assert full_object(changed)["spec"] == {"watts": 4, "color": "red"}
    assert (lamp.spec.watts, changed.name) == (3, "hall")


@pytest.mark.parametrize(
    ("data", "message", "path"),
    [
        (b'{"spec":{"watts":"x"}}', "expected int, got str, at .spec.watts of Lamp", ".spec.watts"),
        (b'{"spec":{"rooms":[1]}}', "expected str, got int, at .spec.rooms[0] of Lamp", ".spec.rooms[0]"),
        (b'{"metadata":{}}', "missing required field spec", ""),
        (b"", "truncated", ""),
        (b"[1]", "expected object, got array", ""),
        (b"<html>", "malformed", ""),
        (b'{"spec":{"rooms":["\xff"]}}', "utf-8", ""),
        (b"[" * 100_000, "array", ""),
        (b'{"x":' * 100_000, "recursion", ""),
    ],
)
def test_a_decode_error_names_the_problem_and_the_path(data: bytes, message: str, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Lamp, data)
    assert message in str(caught.value)
    assert caught.value.path == path


def test_nulls_mean_absent() -> None:
    lamp = decode(Lamp, b'{"metadata":null,"spec":{"watts":null,"rooms":null},"status":null}')
    assert (lamp.spec.watts, lamp.spec.rooms, lamp.status.lit) == (5, [], None)


def test_an_unstructured_object_must_be_a_json_object() -> None:
    with pytest.raises(DecodeError, match="expected object, got list"):
        decode_unstructured(b"[]")


def test_plain_values_lead_to_models_and_back() -> None:
    lamp = Lamp(metadata=ObjectMeta(name="a"), spec=LampSpec(rooms=["hall"]))
    assert from_wire(Lamp, to_wire(lamp)) == lamp


def test_a_value_that_has_no_wire_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be encoded as JSON"):
        encode({"x": object()})


LIST = (
    b'{"metadata":{"resourceVersion":"7"},"items":['
    b'{"metadata":{"name":"a"},"spec":{"watts":1,"new":1}},{"metadata":{"name":"b"},"spec":{}}]}'
)


def test_each_object_of_a_list_knows_its_own_source() -> None:
    metadata, (a, b) = decode_list(Lamp, LIST)
    assert metadata.resource_version == "7"
    assert (a.source, b.source) == (
        b'{"metadata":{"name":"a"},"spec":{"watts":1,"new":1}}',
        b'{"metadata":{"name":"b"},"spec":{}}',
    )
    assert copy.deepcopy(b).source == b.source
    a.spec.watts = 2
    assert difference(a) == {"spec": {"watts": 2}}


def test_a_list_may_be_null_and_its_items_unstructured() -> None:
    assert decode_list(Lamp, b'{"items":null}')[1] == []
    (a, _) = decode_list(Unstructured, LIST)[1]
    assert a["spec"] == {"watts": 1, "new": 1}


def test_an_item_that_does_not_fit_is_named() -> None:
    with pytest.raises(DecodeError, match=r"expected int, got str, at \.items\[1\]\.spec\.watts of list of Lamp"):
        decode_list(Lamp, b'{"items":[{"spec":{}},{"spec":{"watts":"x"}}]}')


def test_managed_fields_stay_raw_until_they_are_used() -> None:
    wire = b'{"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}},{"manager":"n"}]},"spec":{}}'
    lamp = decode(Lamp, wire)
    assert [entry.fields() for entry in lamp.metadata.managed_fields] == [{"f:spec": {}}, {}]
    assert to_wire(copy.deepcopy(lamp))["metadata"] == to_wire(lamp)["metadata"]
    assert b'"fieldsV1":{"f:spec":{}}' in encode(lamp)


@pytest.mark.parametrize("metadata", [None, "web", ["web"], 5])
def test_an_unstructured_object_with_invalid_metadata_has_no_name(metadata: object) -> None:
    assert Unstructured(metadata=metadata).name == ""
