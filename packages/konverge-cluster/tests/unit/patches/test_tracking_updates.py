"""Field ownership after creates, updates and patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import Endpoint, apply_patch, keep_times, make_set, track_update
from konverge_cluster.patches.comparison import compare

Json = dict[str, Any]

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def config_map(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u"}, "data": data}


def widget_of(**spec: Any) -> Json:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}, "spec": spec}


def written(old: Json | None, new: Json, endpoint: Endpoint, *, by: str, now: str = LATE) -> Json:
    """Return the object to store."""
    before = copy.deepcopy((old, new))
    entries = track_update(old, new, manager=by, endpoint=endpoint, now=now)
    assert (old, new) == before
    metadata = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    return {**new, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def edited(live: Json, **data: Any) -> Json:
    """Return the live object with other data, including its managedFields, as a client sends it back."""
    return {**live, "data": data}


def owners(obj: Json) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_a_create_owns_all_its_fields(config_map_endpoint: Endpoint) -> None:
    created = written(None, config_map(a="1"), config_map_endpoint, by="probe", now=EARLY)
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "probe",
            "operation": "Update",
            "apiVersion": "v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_a_built_in_kind_does_not_own_what_its_struct_always_has(deployment: Endpoint) -> None:
    container = {"name": "c", "image": "i", "resources": {}}
    pods = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": pods, "strategy": {}, "paused": True}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec, "status": {}}
    [entry] = track_update(None, obj, manager="m", endpoint=deployment, now=EARLY)
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:paused": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}
                },
            },
        }
    }


def test_a_custom_resource_owns_its_spec_itself(widget: Endpoint) -> None:
    [entry] = track_update(None, widget_of(size=1), manager="m", endpoint=widget, now=EARLY)
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:size": {}}}


def test_no_manager_owns_the_fields_that_the_server_sets(config_map_endpoint: Endpoint) -> None:
    obj = config_map()
    obj["metadata"] |= {"generation": 1, "creationTimestamp": EARLY, "resourceVersion": "1", "labels": {"a": "1"}}
    [entry] = track_update(None, obj, manager="m", endpoint=config_map_endpoint, now=EARLY)
    assert entry["fieldsV1"] == {"f:data": {}, "f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


def test_a_manager_that_changes_a_field_owns_it(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1", b="1"), config_map_endpoint, by="m1", now=EARLY)
    live = written(live, edited(live, a="1", b="2", c="1"), config_map_endpoint, by="m2")
    assert owners(live) == {"m1": {"f:data": {".": {}, "f:a": {}}}, "m2": {"f:data": {"f:b": {}, "f:c": {}}}}
    assert [entry["time"] for entry in live["metadata"]["managedFields"]] == [EARLY, LATE]


def test_a_removed_field_leaves_every_set_and_no_time_changes(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1", b="1"), config_map_endpoint, by="m1", now=EARLY)
    live = written(live, edited(live, a="1"), config_map_endpoint, by="m2")
    assert owners(live) == {"m1": {"f:data": {".": {}, "f:a": {}}}}
    assert live["metadata"]["managedFields"][0]["time"] == EARLY


def test_a_write_that_changes_nothing_changes_no_entry(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="m1", now=EARLY)
    assert written(live, copy.deepcopy(live), config_map_endpoint, by="m2") == live


def test_unchanged_entries_are_returned_as_they_are(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="m1", now=EARLY)
    after = track_update(live, edited(live, a="1", b="1"), manager="m2", endpoint=config_map_endpoint, now=LATE)
    assert after[0] is live["metadata"]["managedFields"][0]


def test_an_update_takes_from_an_applier_too(widget: Endpoint) -> None:
    desired = {key: value for key, value in widget_of(size=1, name="x").items() if key != "metadata"}
    applied = apply_patch(None, {**desired, "metadata": {"name": "w"}}, manager="m1", endpoint=widget, now=EARLY)
    live = {**applied.object, "metadata": {"name": "w", "managedFields": applied.managed_fields}}
    live = written(live, {**live, "spec": {"size": 2, "name": "x"}}, widget, by="m2")
    assert owners(live) == {"m1": {"f:spec": {"f:name": {}}}, "m2": {"f:spec": {"f:size": {}}}}


@pytest.mark.parametrize("nothing", [[], [{}], [{"manager": "", "time": None}]])
def test_managed_fields_are_reset_and_stay_so(config_map_endpoint: Endpoint, nothing: list[Any]) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="m1")
    sent = {**live, "metadata": {**live["metadata"], "managedFields": nothing}, "data": {"a": "2"}}
    live = written(live, sent, config_map_endpoint, by="m2")
    assert "managedFields" not in live["metadata"]
    assert "managedFields" not in written(live, edited(live, a="3"), config_map_endpoint, by="m3")["metadata"]


def test_missing_or_invalid_managed_fields_in_a_request_are_ignored(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="m1")
    without = {**live, "metadata": {"name": "c", "uid": "u"}}
    assert written(live, without, config_map_endpoint, by="m2") == live
    nonsense = {**live, "metadata": {**live["metadata"], "managedFields": [{"manager": "x"}]}}
    assert written(live, nonsense, config_map_endpoint, by="m2") == live


def test_a_client_can_rename_a_manager(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="kubectl-client-side-apply")
    [entry] = live["metadata"]["managedFields"]
    sent = {**live, "metadata": {**live["metadata"], "managedFields": [{**entry, "manager": "kubectl"}]}}
    assert list(owners(written(live, sent, config_map_endpoint, by="kubectl"))) == ["kubectl"]


def test_a_subresource_cannot_edit_managed_fields(widget: Endpoint) -> None:
    reset = {"ex.io/v1": make_set("metadata", "spec")}
    status = Endpoint("ex.io/v1", "Widget", widget.topologies, subresource="status", reset=reset)
    live = written(None, widget_of(size=1), widget, by="m1", now=EARLY)
    sent = {**live, "metadata": {"name": "w", "uid": "u", "managedFields": []}, "status": {"phase": "A"}}
    live = written(live, sent, status, by="m1")
    assert [(e["manager"], e.get("subresource"), e["fieldsV1"]) for e in live["metadata"]["managedFields"]] == [
        ("m1", None, {"f:spec": {".": {}, "f:size": {}}}),
        ("m1", "status", {"f:status": {".": {}, "f:phase": {}}}),
    ]


def test_a_value_that_does_not_match_the_schema_ends_tracking(widget: Endpoint) -> None:
    live = written(None, widget_of(size=1), widget, by="m1")
    assert track_update(live, {**live, "status": {"phase": 1}}, manager="m2", endpoint=widget, now=LATE) == []


def test_duplicates_in_a_list_are_tolerated(widget: Endpoint) -> None:
    live = written(None, widget_of(tags=["x"]), widget, by="m1")
    live = written(live, {**live, "spec": {"tags": ["x", "x"]}}, widget, by="m2")
    assert owners(live)["m2"] == {"f:spec": {"f:tags": {'v:"x"': {}}}}


def test_at_most_ten_updaters_are_kept(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(start="1"), config_map_endpoint, by="m00", now="2026-01-01T00:00:00Z")
    for number in range(1, 13):
        new = edited(live, **live["data"], **{f"k{number}": "1"})
        live = written(live, new, config_map_endpoint, by=f"m{number:02}", now=f"2026-01-01T00:00:{number:02}Z")
    entries = live["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(4, 13))]
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}, "f:start": {}}}
    assert entries[0]["time"] == "2026-01-01T00:00:03Z"


def test_a_value_that_became_atomic_is_owned_as_a_whole(widget: Endpoint) -> None:
    live = written(None, widget_of(whole={"a": "1"}, size=1), widget, by="m1")
    live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:whole"] = {".": {}, "f:a": {}}
    live = written(live, {**live, "spec": {**live["spec"], "size": 2}}, widget, by="m2")
    assert owners(live)["m1"] == {"f:spec": {".": {}, "f:whole": {}}}


def test_entries_of_unknown_versions_of_a_built_in_kind_are_dropped(config_map_endpoint: Endpoint) -> None:
    live = written(None, config_map(a="1"), config_map_endpoint, by="m1")
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    assert owners(written(live, edited(live, a="2"), config_map_endpoint, by="m2")) == {"m2": {"f:data": {"f:a": {}}}}


def test_a_newer_time_alone_is_no_change(config_map_endpoint: Endpoint) -> None:
    old = written(None, config_map(a="1"), config_map_endpoint, by="m1", now=EARLY)
    new = written(None, config_map(a="1"), config_map_endpoint, by="m1", now=LATE)
    assert keep_times(old, new) == old["metadata"]["managedFields"]
    other = edited(new, a="2")
    assert keep_times(old, other) == new["metadata"]["managedFields"]


values = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), values), min_size=1, max_size=6))
def test_every_field_has_exactly_one_updater(config_map_endpoint: Endpoint, sequence: list[tuple[str, Json]]) -> None:
    live: Json | None = None
    for by, data in sequence:
        new = config_map(**data) if live is None else edited(live, **data)
        live = written(live, new, config_map_endpoint, by=by)
    assert live is not None
    keys = [key for fields in owners(live).values() for key in fields.get("f:data", {}) if key != "."]
    assert sorted(keys) == sorted(f"f:{key}" for key in live["data"])
    there, _ = compare(config_map_endpoint.topology.root, {}, live)
    assert set(keys) <= there["f:data"].keys()
