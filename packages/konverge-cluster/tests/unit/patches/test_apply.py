"""Server-side apply: ownership, conflicts, removed fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import Applied, Endpoint, PatchError, apply_patch, track_update
from konverge_cluster.patches.comparison import compare, fields_of
from konverge_cluster.patches.field_sets import difference

Json = dict[str, Any]

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def config(**spec: Any) -> Json:
    desired = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return {**desired, "spec": spec} if spec else desired


def stored(applied: Applied) -> Json:
    """Return the object to store."""
    metadata = {**applied.object["metadata"], "managedFields": applied.managed_fields}
    return {**applied.object, "metadata": metadata if applied.managed_fields else applied.object["metadata"]}


def apply(
    live: Json | None, desired: Json, endpoint: Endpoint, *, by: str, force: bool = False, now: str = LATE
) -> Json:
    before = copy.deepcopy((live, desired))
    applied = apply_patch(live, desired, manager=by, endpoint=endpoint, now=now, force=force)
    assert (live, desired) == before
    assert "managedFields" not in applied.object["metadata"]
    return stored(applied)


def owners(obj: Json) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"].get("f:spec") for entry in obj["metadata"].get("managedFields", [])}


def conflict(live: Json, desired: Json, endpoint: Endpoint, *, by: str) -> PatchError:
    with pytest.raises(PatchError) as caught:
        apply_patch(live, desired, manager=by, endpoint=endpoint, now=LATE)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    return caught.value


def test_the_first_apply_owns_its_fields(widget: Endpoint) -> None:
    created = apply(None, config(size=1, items=[{"name": "a", "value": "1"}]), widget, by="m1", now=EARLY)
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "ex.io/v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}, "f:size": {}}
            },
        }
    ]


def test_fields_that_a_manager_no_longer_applies_are_removed(widget: Endpoint) -> None:
    live = apply(None, config(size=1, name="x", labels={"a": "1", "b": "1"}), widget, by="m1")
    live = apply(live, config(size=1, labels={"b": "1"}), widget, by="m1")
    assert live["spec"] == {"size": 1, "labels": {"b": "1"}}


def test_fields_with_another_owner_remain(widget: Endpoint) -> None:
    live = apply(None, config(size=1, tags=["x", "y"]), widget, by="m1")
    live = apply(live, config(tags=["y"]), widget, by="m2")
    live = apply(live, config(size=1), widget, by="m1")
    assert live["spec"] == {"size": 1, "tags": ["y"]}
    assert owners(live) == {"m1": {"f:size": {}}, "m2": {"f:tags": {'v:"y"': {}}}}


def test_an_unowned_field_inside_an_item_keeps_the_item(widget: Endpoint) -> None:
    live = apply(None, config(items=[{"name": "a"}, {"name": "b"}]), widget, by="m1")
    live["spec"]["items"][0]["value"] = "unowned"
    live = apply(live, config(items=[{"name": "b"}]), widget, by="m1")
    assert live["spec"]["items"] == [{"name": "b"}]


def test_a_field_of_another_manager_is_a_conflict(widget: Endpoint) -> None:
    live = apply(None, config(size=1, name="x"), widget, by="m1")
    error = conflict(live, config(size=2), widget, by="m2")
    assert error.message == 'Apply failed with 1 conflict: conflict with "m1": .spec.size'
    assert error.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".spec.size"}]
    }


def test_several_conflicts_are_listed_by_manager(widget: Endpoint) -> None:
    live = apply(None, config(size=1, name="x"), widget, by="m2")
    changed = {**live, "spec": {**live["spec"], "tags": ["t"], "whole": {"a": "1"}}}
    changed["metadata"] = {
        **live["metadata"],
        "managedFields": track_update(live, changed, manager="m1", endpoint=widget, now=LATE),
    }
    error = conflict(changed, config(size=2, name="y", whole={"a": "2"}), widget, by="m3")
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "m1" using ex.io/v1:\n- .spec.whole\n'
        'conflicts with "m2":\n- .spec.name\n- .spec.size'
    )


def test_a_forced_apply_takes_the_field(widget: Endpoint) -> None:
    live = apply(None, config(size=1, name="x"), widget, by="m1")
    live = apply(live, config(size=2), widget, by="m2", force=True)
    assert live["spec"] == {"size": 2, "name": "x"}
    assert owners(live) == {"m1": {"f:name": {}}, "m2": {"f:size": {}}}


def test_equal_values_are_shared(widget: Endpoint) -> None:
    live = apply(None, config(size=1), widget, by="m1")
    live = apply(live, config(size=1), widget, by="m2")
    assert owners(live) == {"m1": {"f:size": {}}, "m2": {"f:size": {}}}


def test_an_apply_that_changes_nothing_keeps_the_time(widget: Endpoint) -> None:
    live = apply(None, config(size=1), widget, by="m1", now=EARLY)
    assert apply(live, config(size=1), widget, by="m1") == live


def test_a_new_owner_that_changes_nothing_has_no_time(widget: Endpoint) -> None:
    live = apply(None, config(size=1), widget, by="m1", now=EARLY)
    entries = apply(live, config(size=1), widget, by="m2")["metadata"]["managedFields"]
    assert ["time" in entry for entry in entries] == [False, True]


def test_an_object_without_owners_belongs_to_before_first_apply(widget: Endpoint) -> None:
    live = {**config(size=1, name="x"), "metadata": {"name": "w", "uid": "u"}}
    error = conflict(live, config(size=2), widget, by="m1")
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using ex.io/v1: .spec.size'
    )
    apply_as = apply(live, config(size=2), widget, by="m1", force=True)
    assert owners(apply_as) == {"m1": {"f:size": {}}, "before-first-apply": {".": {}, "f:name": {}}}


def test_a_manager_without_fields_has_no_entry(widget: Endpoint) -> None:
    live = apply(None, config(size=1), widget, by="m1")
    live = apply(live, config(), widget, by="m1")
    assert "managedFields" not in live["metadata"]
    assert "spec" not in live


def test_fields_that_the_endpoint_resets_are_merged_but_not_owned(widget: Endpoint) -> None:
    created = apply(None, {**config(size=1), "status": {"phase": "A"}}, widget, by="m1")
    assert "f:status" not in created["metadata"]["managedFields"][0]["fieldsV1"]


def test_an_apply_in_another_version_keeps_the_one_entry(widget: Endpoint) -> None:
    live = apply(None, config(size=1, name="x"), widget, by="m1")
    newer = Endpoint("ex.io/v2", "Widget", widget.topologies)
    live = apply({**live, "apiVersion": "ex.io/v2"}, {**config(size=1), "apiVersion": "ex.io/v2"}, newer, by="m1")
    assert live["spec"] == {"size": 1}
    assert [entry["apiVersion"] for entry in live["metadata"]["managedFields"]] == ["ex.io/v2"]


def test_a_custom_resource_with_an_entry_of_a_removed_version_cannot_be_applied(widget: Endpoint) -> None:
    live = apply(None, config(size=1), widget, by="m1")
    live["metadata"]["managedFields"][0]["apiVersion"] = "ex.io/v0"
    with pytest.raises(PatchError, match=r"request to convert CR to an invalid group/version: ex\.io/v0"):
        apply(live, config(size=2), widget, by="m2")


@pytest.mark.parametrize(
    ("desired", "code", "message"),
    [
        ({"kind": "Gadget"}, 400, "invalid object type: ex.io/v1, Kind=Gadget"),
        ({"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=Widget"),
        ({"apiVersion": "", "kind": ""}, 400, "invalid object type: /, Kind="),
        ({"metadata": {"name": "w", "managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (
            {"spec": {"bogus": 1}},
            500,
            "failed to create typed patch object (/w; ex.io/v1, Kind=Widget): "
            ".spec.bogus: field not declared in schema",
        ),
        (
            {"metadata": {"name": "w", "namespace": "n"}, "spec": {"items": [{"name": "a"}, {"name": "a"}]}},
            500,
            "failed to create typed patch object (n/w; ex.io/v1, Kind=Widget): "
            '.spec.items: duplicate entries for key [name="a"]',
        ),
        (
            {"spec": {"size": "1", "name": 1}},
            500,
            "failed to create typed patch object (/w; ex.io/v1, Kind=Widget): errors:\n"
            "  .spec.size: expected numeric (int or float), got string\n"
            "  .spec.name: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ],
)
def test_invalid_configurations_are_rejected_with_the_texts_of_the_real_server(
    widget: Endpoint, desired: Json, code: int, message: str
) -> None:
    with pytest.raises(PatchError) as caught:
        apply_patch(None, {**config(), **desired}, manager="m1", endpoint=widget, now=LATE)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_keys_of_list_items_are_completed_by_defaults(deployment: Endpoint) -> None:
    ports = [{"containerPort": 80, "protocol": "TCP"}]
    pods = {"spec": {"containers": [{"name": "a", "image": "i", "ports": ports}]}}
    live: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": pods}}
    live["metadata"] = {
        "name": "d",
        "managedFields": track_update(None, live, manager="u", endpoint=deployment, now=EARLY),
    }
    desired = copy.deepcopy(live)
    desired["metadata"] = {"name": "d"}
    desired["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    applied = apply_patch(live, desired, manager="m1", endpoint=deployment, now=LATE)
    assert applied.object["spec"] == live["spec"]


specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 1),
        "name": st.sampled_from("xy"),
        "tags": st.lists(st.sampled_from("xyz"), max_size=3, unique=True),
        "labels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("12")),
        "whole": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
        "items": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": st.sampled_from("12")}),
            max_size=3,
            unique_by=lambda item: item["name"],
        ),
    },
)
writes = st.lists(st.tuples(st.sampled_from(["m1", "m2"]), specs, st.booleans()), min_size=1, max_size=5)
bounded = settings(max_examples=60, deadline=None)


def apply_all(widget: Endpoint, sequence: list[tuple[str, Json, bool]]) -> Json | None:
    live = None
    for by, spec, force in sequence:
        try:
            live = apply(live, config(**spec), widget, by=by, force=force)
        except PatchError:
            if force:
                raise
    return live


@bounded
@given(writes)
def test_every_owned_field_exists(widget: Endpoint, sequence: list[tuple[str, Json, bool]]) -> None:
    live = apply_all(widget, sequence)
    if live is None:
        return
    there, _ = compare(widget.topology.root, {}, live)
    for entry in live["metadata"].get("managedFields", []):
        assert not difference(entry["fieldsV1"], there)


@bounded
@given(writes, specs)
def test_applying_again_changes_nothing(widget: Endpoint, sequence: list[tuple[str, Json, bool]], spec: Json) -> None:
    # For an object without owners every apply adds `before-first-apply` again.
    desired = config(**{"size": 1, **spec})
    once = apply(apply_all(widget, sequence), desired, widget, by="m3", force=True)
    assert apply(once, desired, widget, by="m3", now="2026-01-03T00:00:00Z") == once


@bounded
@given(specs, specs)
def test_applying_and_removing_fields_leaves_the_object_unchanged(widget: Endpoint, base: Json, extra: Json) -> None:
    live = apply(None, config(size=9, **{k: v for k, v in base.items() if k != "size"}), widget, by="m1", now=EARLY)
    try:
        after = apply(live, config(**extra), widget, by="m2")
    except PatchError:
        return
    left = apply(after, config(), widget, by="m2")
    assert owners(left) == owners(live)
    assert fields_of(widget.topology.root, left) == fields_of(widget.topology.root, live)
