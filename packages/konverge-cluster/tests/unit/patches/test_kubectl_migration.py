"""The migration from client-side apply to the manager `kubectl`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge_cluster.patches import Applied, Endpoint, PatchError, apply_patch, track_update
from konverge_cluster.patches.last_applied import ANNOTATION

Json = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"


def desired(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def live(config_map_endpoint: Endpoint, annotation: str, **data: str) -> Json:
    obj = {**desired(**data), "metadata": {"name": "c", "annotations": {ANNOTATION: annotation}}}
    entries = track_update(None, obj, manager="kubectl-client-side-apply", endpoint=config_map_endpoint, now=NOW)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def apply_as(endpoint: Endpoint, obj: Json, config: Json, *, by: str = "kubectl") -> Applied:
    return apply_patch(obj, config, manager=by, endpoint=endpoint, now=NOW)


def test_fields_of_client_side_apply_are_taken_over_without_a_conflict(config_map_endpoint: Endpoint) -> None:
    obj = live(config_map_endpoint, json.dumps(desired(a="1")), a="1")
    applied = apply_as(config_map_endpoint, obj, desired(a="2"))
    assert applied.object["data"] == {"a": "2"}
    annotation = applied.object["metadata"]["annotations"][ANNOTATION]
    assert annotation == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"c"}}\n'


def test_another_manager_gets_a_conflict(config_map_endpoint: Endpoint) -> None:
    obj = live(config_map_endpoint, json.dumps(desired(a="1")), a="1")
    with pytest.raises(PatchError, match=r"conflict with \"kubectl-client-side-apply\" using v1: .data.a"):
        apply_as(config_map_endpoint, obj, desired(a="2"), by="m1")


@pytest.mark.parametrize(
    "annotation",
    [
        "nonsense",
        "[]",
        "",
        json.dumps({**desired(a="1"), "apiVersion": "v2"}),
        json.dumps(desired(a="0")),
        json.dumps(desired()),
    ],
)
def test_fields_that_it_did_not_write_or_that_changed_since_are_conflicts(
    config_map_endpoint: Endpoint, annotation: str
) -> None:
    with pytest.raises(PatchError, match=r"\.data\.a$"):
        apply_as(config_map_endpoint, live(config_map_endpoint, annotation, a="1"), desired(a="2"))


def test_only_what_is_not_allowed_is_listed(config_map_endpoint: Endpoint) -> None:
    obj = live(config_map_endpoint, json.dumps(desired(a="1")), a="1", b="1")
    with pytest.raises(PatchError, match=r"1 conflict: .*: \.data\.b$"):
        apply_as(config_map_endpoint, obj, desired(a="2", b="2"))


def test_an_annotation_that_grows_too_large_is_dropped(config_map_endpoint: Endpoint) -> None:
    obj = live(config_map_endpoint, json.dumps(desired(a="1")), a="1")
    applied = apply_as(config_map_endpoint, obj, desired(a="1", big="x" * 300_000))
    assert applied.object["metadata"]["annotations"] == {}


def test_the_annotation_does_not_contain_itself(config_map_endpoint: Endpoint) -> None:
    obj = live(config_map_endpoint, json.dumps(desired(a="1")), a="1")
    config = {**desired(a="1"), "metadata": {"name": "c", "annotations": {ANNOTATION: "{}", "x": "1"}}}
    applied = apply_patch(obj, config, manager="kubectl", endpoint=config_map_endpoint, now=NOW, force=True)
    recorded = json.loads(applied.object["metadata"]["annotations"][ANNOTATION])
    assert recorded["metadata"]["annotations"] == {"x": "1"}
