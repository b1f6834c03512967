"""The fields that are ours: what is seen of an object there, and when that is just what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Unstructured
from konverge.reconcile.owned_fields import fields_of, is_applied_by, look, pick, wants_nothing

Json = dict[str, Any]


def entry(fields: Json, **more: Any) -> Json:
    return {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields, **more}


def managed(*entries: Json) -> Unstructured:
    return Unstructured({"apiVersion": "v1", "kind": "Thing", "metadata": {"managedFields": list(entries)}})


@pytest.mark.parametrize(
    "other",
    [
        {"manager": "them"},
        {"operation": "Update"},
        {"subresource": "status"},
    ],
)
def test_only_our_own_apply_of_the_object_itself_counts(other: Json) -> None:
    obj = managed(entry({"f:x": {}}, **other))
    assert fields_of(obj, "us") is None
    assert not is_applied_by(obj, "us")
    both = managed(entry({"f:x": {}}, **other), entry({"f:y": {}}))
    assert fields_of(both, "us") == {"f:y": {}}
    assert is_applied_by(both, "us")


def test_fields_in_the_terms_of_another_version_say_nothing_about_this_one() -> None:
    obj = managed(entry({"f:x": {}}, apiVersion="v1beta1"))
    assert fields_of(obj, "us") is None
    assert is_applied_by(obj, "us")


SPEC: Json = {"f:spec": {"f:size": {}, "f:words": {}}}


@pytest.mark.parametrize(
    ("live", "desired", "agrees"),
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
def test_fields_agree_when_exactly_ours_hold_exactly_what_is_wanted(live: Json, desired: Json, agrees: bool) -> None:
    assert look(SPEC, {"spec": live}, {"spec": desired}).agrees is agrees


def test_what_an_object_is_and_is_called_is_nobodys() -> None:
    wanted = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y"}, "spec": {"size": 1}}
    live = {**wanted, "metadata": {"name": "x", "namespace": "y", "uid": "u", "labels": {"theirs": "1"}}}
    assert look({"f:spec": {"f:size": {}}}, live, wanted).agrees


PORTS: Json = {
    "f:ports": {
        'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}},
        'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
    }
}
LIVE_PORTS: list[Json] = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]


@pytest.mark.parametrize(
    ("live", "desired", "agrees"),
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
def test_items_are_known_by_their_keys_and_those_with_a_default_may_be_left_out(
    live: Any, desired: Any, agrees: bool
) -> None:
    assert look(PORTS, {"ports": live}, {"ports": desired}).agrees is agrees


TAGS: Json = {"f:tags": {'v:"a"': {}, "v:1": {}}}


@pytest.mark.parametrize(
    ("live", "desired", "agrees"),
    [
        (["a", "theirs", 1], ["a", 1], True),
        ([1, "a"], ["a", 1], False),
        (["a", 1], ["a"], False),
        (["a", True], ["a", 1], False),
        (["a", 1], ["a", 1, 2], False),
    ],
)
def test_items_of_a_set_are_known_by_their_value(live: list[Any], desired: list[Any], agrees: bool) -> None:
    assert look(TAGS, {"tags": live}, {"tags": desired}).agrees is agrees


def test_an_empty_list_that_nobody_owns_is_as_wanted_while_it_is_empty() -> None:
    owned: Json = {"f:spec": {"f:size": {}}}
    wanted = {"spec": {"size": 1, "tags": []}}
    assert look(owned, {"spec": {"size": 1}}, wanted).agrees
    assert look(owned, {"spec": {"size": 1, "tags": []}}, wanted).agrees
    assert not look(owned, {"spec": {"size": 1, "tags": ["theirs"]}}, wanted).agrees
    assert not look(owned, {"spec": {"size": 1}}, {"spec": {"size": 1, "options": {}}}).agrees


def test_an_object_may_want_nothing() -> None:
    assert wants_nothing({"apiVersion": "v1", "metadata": {"name": "x"}})
    assert wants_nothing({"metadata": {"name": "x", "finalizers": []}, "spec": {"tags": []}})
    assert not wants_nothing({"metadata": {"name": "x"}, "spec": {}})
    assert not wants_nothing({"metadata": {"labels": {"a": "b"}}})


OWNED: Json = {"f:spec": {"f:size": {}, **PORTS, **TAGS}}
WISH = {"spec": {"size": 1, "ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}], "tags": ["a", 1]}}
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
def test_what_is_seen_differs_when_anything_that_is_ours_does(change: Json) -> None:
    before = look(OWNED, LIVE, WISH)
    after = look(OWNED, {"spec": {**LIVE["spec"], **change}}, WISH)
    assert before.agrees
    assert before.values != after.values


def test_what_is_seen_differs_when_something_is_no_longer_ours() -> None:
    less = {"f:spec": {**PORTS, **TAGS}}
    assert look(OWNED, LIVE, WISH).values != look(less, LIVE, WISH).values


def test_what_is_seen_is_the_same_whatever_others_add() -> None:
    theirs = {
        "size": 1,
        "extra": 1,
        "ports": [{"port": 1, "protocol": "TCP"}, {**LIVE_PORTS[0], "name": "x"}, LIVE_PORTS[1]],
        "tags": ["z", "a", "y", 1],
    }
    assert look(OWNED, LIVE, WISH).values == look(OWNED, {"spec": theirs, "status": {"a": 1}}, WISH).values


def test_just_our_part_of_an_object_is_picked_with_the_keys_of_its_items() -> None:
    live = {"spec": {"size": 1, "extra": 2, "ports": [*LIVE_PORTS, {"port": 9}], "tags": ["z", "a", 1]}}
    picked = pick(OWNED, live)
    assert picked == {"spec": {"size": 1, "ports": LIVE_PORTS, "tags": ["a", 1]}}
