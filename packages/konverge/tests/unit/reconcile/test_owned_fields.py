"""The fields that our manager owns: their values, and whether they match the desired state."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Unstructured, decode, encode
from konverge.reconcile.owned_fields import (
    compare,
    fields_of,
    is_applied_by,
    pick,
    sets_no_fields,
    without_empty_collections,
    without_identity,
)

Json = dict[str, Any]


def entry(fields: Json, **more: Any) -> Json:
    return {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields, **more}


def managed(*entries: Json) -> Unstructured:
    return Unstructured({"apiVersion": "v1", "kind": "Gadget", "metadata": {"managedFields": list(entries)}})


@pytest.mark.parametrize(
    "other",
    [
        {"manager": "them"},
        {"operation": "Update"},
        {"subresource": "status"},
    ],
)
def test_only_an_apply_of_our_manager_without_subresource_counts(other: Json) -> None:
    obj = managed(entry({"f:x": {}}, **other))
    assert fields_of(obj, "us") is None
    assert not is_applied_by(obj, "us")
    both = managed(entry({"f:x": {}}, **other), entry({"f:y": {}}))
    assert fields_of(both, "us") == {"f:y": {}}
    assert is_applied_by(both, "us")
    assert not is_applied_by(decode(ConfigMap, encode(obj)), "us")
    assert is_applied_by(decode(ConfigMap, encode(both)), "us")


def test_fields_of_another_api_version_are_ignored() -> None:
    obj = managed(entry({"f:x": {}}, apiVersion="v1beta1"))
    assert fields_of(obj, "us") is None
    assert is_applied_by(obj, "us")


SPEC: Json = {"f:spec": {"f:size": {}, "f:words": {}}}


@pytest.mark.parametrize(
    ("live", "desired", "matches"),
    [
        ({"size": 1, "words": ["a"]}, {"size": 1, "words": ["a"]}, True),
        ({"size": 1, "words": ["a"], "theirs": 1}, {"size": 1, "words": ["a"]}, True),
        ({"size": 2, "words": ["a"]}, {"size": 1, "words": ["a"]}, False),
        ({"size": 1, "words": ["b", "a"]}, {"size": 1, "words": ["a", "b"]}, False),
        ({"size": 1, "words": ["a"]}, {"size": 1}, False),
        ({"size": 1, "words": ["a"], "more": 1}, {"size": 1, "words": ["a"], "more": 1}, False),
        ({"size": 1.0, "words": ["a"]}, {"size": 1, "words": ["a"]}, False),
        ({"size": True, "words": ["a"]}, {"size": 1, "words": ["a"]}, False),
        ({"words": ["a"]}, {"size": 1, "words": ["a"]}, False),
        ({"size": 1}, {"size": 1, "words": []}, True),
        ({"words": []}, {"size": 0, "words": []}, True),
        ({"size": 1, "words": ["theirs"]}, {"size": 1, "words": []}, True),
        ({"size": 1, "words": {"a": 1}}, {"size": 1, "words": []}, False),
    ],
)
def test_fields_match_if_exactly_the_owned_ones_have_the_desired_values(
    live: Json, desired: Json, matches: bool
) -> None:
    assert compare(SPEC, {"spec": live}, {"spec": desired}).matches is matches


def test_kind_name_and_namespace_are_not_owned() -> None:
    desired = {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "x", "namespace": "y"}, "spec": {"size": 1}}
    live = {**desired, "metadata": {"name": "x", "namespace": "y", "uid": "u", "labels": {"theirs": "1"}}}
    assert compare({"f:spec": {"f:size": {}}}, live, desired).matches


PORTS: Json = {
    "f:ports": {
        'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}},
        'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
    }
}
LIVE_PORTS: list[Json] = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]


@pytest.mark.parametrize(
    ("live", "desired", "matches"),
    [
        (LIVE_PORTS, [{"port": 53}, {"port": 53, "protocol": "UDP"}], True),
        ([{"port": 9, "protocol": "TCP"}, *LIVE_PORTS], [{"port": 53}, {"port": 53, "protocol": "UDP"}], True),
        (LIVE_PORTS[::-1], [{"port": 53}, {"port": 53, "protocol": "UDP"}], False),
        (LIVE_PORTS[::-1], [{"port": 53, "protocol": "UDP"}, {"port": 53}], True),
        (LIVE_PORTS, [{"port": 53}], False),
        (LIVE_PORTS, [{"port": 53}, {"port": 53, "protocol": "UDP"}, {"port": 54}], False),
        (LIVE_PORTS[:1], [{"port": 53}, {"port": 53, "protocol": "UDP"}], False),
        ([{**LIVE_PORTS[0], "name": "theirs"}, LIVE_PORTS[1]], [{"port": 53}, {"port": 53, "protocol": "UDP"}], True),
        (LIVE_PORTS, [{"port": 53, "name": "dns"}, {"port": 53, "protocol": "UDP"}], False),
        ("odd", [{"port": 53}], False),
        (LIVE_PORTS, "odd", False),
        (LIVE_PORTS, [53, None], False),
    ],
)
def test_items_are_found_by_their_keys_and_keys_with_a_default_may_be_left_out(
    live: Any, desired: Any, matches: bool
) -> None:
    assert compare(PORTS, {"ports": live}, {"ports": desired}).matches is matches


TAGS: Json = {"f:tags": {'v:"a"': {}, "v:1": {}}}


@pytest.mark.parametrize(
    ("live", "desired", "matches"),
    [
        (["a", "theirs", 1], ["a", 1], True),
        ([1, "a"], ["a", 1], False),
        (["a", 1], ["a"], False),
        (["a", True], ["a", 1], False),
        (["a", 1], ["a", 1, 2], False),
    ],
)
def test_items_of_a_set_are_found_by_their_value(live: list[Any], desired: list[Any], matches: bool) -> None:
    assert compare(TAGS, {"tags": live}, {"tags": desired}).matches is matches


def test_a_desired_empty_list_without_owner_matches_while_it_is_empty() -> None:
    owned: Json = {"f:spec": {"f:size": {}}}
    desired = {"spec": {"size": 1, "tags": []}}
    assert compare(owned, {"spec": {"size": 1}}, desired).matches
    assert compare(owned, {"spec": {"size": 1, "tags": []}}, desired).matches
    assert not compare(owned, {"spec": {"size": 1, "tags": ["theirs"]}}, desired).matches
    assert not compare(owned, {"spec": {"size": 1}}, {"spec": {"size": 1, "options": {}}}).matches


def test_an_object_may_set_no_fields() -> None:
    assert sets_no_fields({"apiVersion": "v1", "metadata": {"name": "x"}})
    assert sets_no_fields({"metadata": {"name": "x", "finalizers": []}, "spec": {"tags": []}})
    assert not sets_no_fields({"metadata": {"name": "x"}, "spec": {}})
    assert not sets_no_fields({"metadata": {"labels": {"a": "b"}}})


OWNED: Json = {"f:spec": {"f:size": {}, **PORTS, **TAGS}}
DESIRED = {"spec": {"size": 1, "ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}], "tags": ["a", 1]}}
LIVE = {"spec": {"size": 1, "ports": LIVE_PORTS, "tags": ["a", 1]}}


@pytest.mark.parametrize(
    "change",
    [
        {"size": 2},
        {"ports": LIVE_PORTS[::-1]},
        {"ports": LIVE_PORTS[:1]},
        {"ports": [{"port": 54, "protocol": "TCP"}, LIVE_PORTS[1]]},
        {"tags": [1, "a"]},
        {"tags": ["a"]},
        {"ports": None},
    ],
)
def test_values_differ_if_an_owned_field_differs(change: Json) -> None:
    before = compare(OWNED, LIVE, DESIRED)
    after = compare(OWNED, {"spec": {**LIVE["spec"], **change}}, DESIRED)
    assert before.matches
    assert before.values != after.values


def test_values_differ_if_a_field_is_no_longer_owned() -> None:
    less = {"f:spec": {**PORTS, **TAGS}}
    assert compare(OWNED, LIVE, DESIRED).values != compare(less, LIVE, DESIRED).values


def test_values_do_not_depend_on_fields_of_others() -> None:
    theirs = {
        "size": 1,
        "extra": 1,
        "ports": [{"port": 1, "protocol": "TCP"}, {**LIVE_PORTS[0], "name": "x"}, LIVE_PORTS[1]],
        "tags": ["z", "a", "y", 1],
    }
    assert compare(OWNED, LIVE, DESIRED).values == compare(OWNED, {"spec": theirs, "status": {"a": 1}}, DESIRED).values


def test_the_owned_part_of_an_object_is_picked_with_the_keys_of_its_items() -> None:
    live = {"spec": {"size": 1, "extra": 2, "ports": [*LIVE_PORTS, {"port": 9}], "tags": ["z", "a", 1]}}
    picked = pick(OWNED, live)
    assert picked == {"spec": {"size": 1, "ports": LIVE_PORTS, "tags": ["a", 1]}}


@pytest.mark.parametrize(
    ("owned", "live"),
    [
        ({}, {"a": "b"}),
        ({".": {}}, {"a": "b"}),
        ({"f:a": {}}, "text"),
        ({"f:a": {}}, ["a"]),
        ({'k:{"name":"a"}': {}}, {"name": "a"}),
        ({'v:"a"': {}}, "a"),
        ({"f:a": {}, 'v:"a"': {}}, {"a": 1, "b": 2}),
    ],
    ids=["atomic map", "map itself", "scalar", "list", "no list", "no set", "mixed"],
)
def test_a_value_that_the_tree_does_not_describe_is_picked_as_a_whole(owned: Json, live: Any) -> None:
    assert pick(owned, live) == live


def test_absent_fields_and_items_are_not_picked() -> None:
    assert pick({"f:a": {}, "f:b": {}}, {"a": 1, "c": 3}) == {"a": 1}
    assert pick({'k:{"name":"a"}': {"f:name": {}}, 'k:{"name":"b"}': {}}, [{"name": "a", "x": 1}]) == [{"name": "a"}]
    assert pick({'k:{"name":"a"}': {"f:x": {}}}, [{"name": "a", "x": 1, "y": 2}]) == [{"name": "a", "x": 1}]


NAMED: Json = {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:args": {'v:"x"': {}}}, 'k:{"name":"b"}': {"f:name": {}}}


@pytest.mark.parametrize(
    ("owned", "desired", "rest"),
    [
        ({"f:data": {"f:a": {}}}, {"data": {}}, None),
        ({"f:data": {"f:a": {}}}, {"data": {}, "more": 1}, {"more": 1}),
        ({"f:data": {"f:a": {}}}, {"data": {"a": 1}}, {"data": {"a": 1}}),
        ({"f:data": {}}, {"data": {}}, {"data": {}}),
        ({}, {"data": {}}, {"data": {}}),
        ({"f:data": {"f:a": {}}}, {"data": None, "x": 1}, {"data": None, "x": 1}),
        ({"f:data": {"f:a": {}}}, {"data": "text"}, {"data": "text"}),
        ({"f:spec": {"f:data": {"f:a": {}}, "f:x": {}}}, {"spec": {"data": {}, "x": 0}}, {"spec": {"x": 0}}),
        (
            {"f:items": NAMED},
            {"items": [{"name": "b"}, {"name": "a", "args": []}]},
            {"items": [{"name": "b"}, {"name": "a"}]},
        ),
        ({"f:items": NAMED}, {"items": []}, None),
    ],
)
def test_collections_that_become_empty_and_have_items_of_ours_are_left_out(
    owned: Json, desired: Any, rest: Any
) -> None:
    assert without_empty_collections(owned, desired) == rest


def test_the_identity_of_an_object_is_no_field() -> None:
    system = {"uid": "u", "resourceVersion": "7", "generation": 1, "creationTimestamp": "t", "selfLink": "/x"}
    metadata = {"name": "x", "namespace": "y", "managedFields": [], **system}
    document = {"apiVersion": "v1", "kind": "Gadget", "metadata": metadata, "spec": {"size": 1}}
    assert without_identity(document) == {"spec": {"size": 1}}
    document["metadata"] = {**metadata, "labels": {"a": "b"}}
    assert without_identity(document) == {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 1}}
    assert without_identity({"spec": 1}) == {"spec": 1}


def test_an_object_without_managed_fields_has_no_fields_of_anybody() -> None:
    assert fields_of({"apiVersion": "v1"}, "us") is None
    assert fields_of({"metadata": {"managedFields": None}}, "us") is None
    assert fields_of(managed(entry({})), "us") == {}
    assert not is_applied_by(Unstructured({"metadata": {}}), "us")


NAMED_PORT: Json = {'k:{"port":80}': {".": {}, "f:port": {}, "f:name": {}}}
TWO_KEYS: Json = {'k:{"name":"a","zone":"x"}': {"f:name": {}, "f:zone": {}}}


@pytest.mark.parametrize(
    ("owned", "live", "desired", "matches"),
    [
        (NAMED_PORT, [{"port": 80, "name": "x"}], [{"port": 80, "name": "x"}], True),
        (NAMED_PORT, [{"port": 80, "name": "y"}], [{"port": 80, "name": "x"}], False),
        (NAMED_PORT, [{"port": 80.0, "name": "x"}], [{"port": 80, "name": "x"}], False),
        (NAMED_PORT, [{"port": "80", "name": "x"}], [{"port": 80, "name": "x"}], False),
        (NAMED_PORT, ["odd", {"port": 80, "name": "x"}], [{"port": 80, "name": "x"}], True),
        (NAMED_PORT, [{"port": 80, "name": "x"}], [{"name": "x"}], False),
        (NAMED_PORT, [{"port": 80, "name": "x"}], [], False),
        (NAMED_PORT, [{"port": 80, "name": "x"}], [{"port": 80, "name": "x"}, {"port": 80, "name": "x"}], False),
        (TWO_KEYS, [{"name": "a", "zone": "x"}], [{"name": "a", "zone": "x"}], True),
        (TWO_KEYS, [{"name": "a", "zone": "y"}], [{"name": "a", "zone": "x"}], False),
        (TWO_KEYS, [{"name": "a", "zone": "x"}], [{"name": "a", "zone": "y"}], False),
        (TWO_KEYS, [{"name": "x", "zone": "a"}], [{"name": "a", "zone": "x"}], False),
        (TWO_KEYS, [{"name": "a", "zone": "x"}], [{"zone": "x"}], False),
        (PORTS["f:ports"], LIVE_PORTS, [{"port": 54}, {"port": 53, "protocol": "UDP"}], False),
        (PORTS["f:ports"], LIVE_PORTS, [{"other": 53}, {"port": 53, "protocol": "UDP"}], False),
        (PORTS["f:ports"], LIVE_PORTS, [{"port": 53}, {"port": 53}], False),
        (PORTS["f:ports"], LIVE_PORTS, [{"port": 53, "protocol": "UDP"}, {"port": 53}], False),
        ({'k:{"a":1}': {}, "f:a": {}}, {"a": 1}, {"a": 1}, True),
        ({'k:{"a":1}': {}, "f:a": {}}, {"a": 1}, {"a": 2}, False),
        ({"f:a": {}}, "text", "text", True),
        ({"f:a": {}}, "text", {"a": 1}, False),
        ({'v:"a"': {}}, "text", "text", True),
    ],
)
def test_items_with_other_keys_values_or_order_do_not_match(
    owned: Json, live: Any, desired: Any, matches: bool
) -> None:
    assert compare({"f:x": owned}, {"x": live}, {"x": desired}).matches is matches


def test_an_object_without_owned_fields_matches_if_it_sets_none() -> None:
    assert compare({}, {"spec": {"a": 1}}, {"apiVersion": "v1", "metadata": {"name": "x"}}).matches
    assert compare({".": {}}, {}, {}).matches
    assert not compare({}, {"spec": {"a": 1}}, {"spec": {"a": 1}}).matches
    assert compare({}, {"spec": {}}, {"spec": {"tags": []}}).matches
    assert not compare({}, {"spec": {"tags": [1]}}, {"spec": {"tags": []}}).matches
    assert compare({}, {}, {}).values is None


def test_values_tell_absent_from_null_and_false() -> None:
    owned: Json = {"f:a": {}}
    values = [compare(owned, live, {"a": 1}).values for live in ({}, {"a": None}, {"a": False}, {"a": 0}, {"a": ""})]
    assert all(one != other for index, one in enumerate(map(repr, values)) for other in map(repr, values[:index]))
