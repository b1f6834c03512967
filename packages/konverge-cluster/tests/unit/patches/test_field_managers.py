"""Entries of managedFields: reading, writing, names."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.patches import entries_of_object, entries_of_scale, manager_name
from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.managers import Identity, read_managers, write_managers

Json = dict[str, Any]


def entry(manager: str, fields: Json | None = None, **more: Any) -> Json:
    plain = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**plain, "fieldsV1": {"f:spec": {}} if fields is None else fields, **more}


def test_entries_are_sorted() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    entries = [
        entry("b", operation="Apply"),
        entry("z"),
        entry("a", time=early),
        entry("b", time=early, apiVersion="v1"),
        entry("b", time=early, apiVersion="v2"),
        entry("b", time=early, apiVersion="v2", subresource="status"),
        entry("a", time=late),
    ]
    shuffled = [entries[place] for place in (6, 2, 5, 0, 4, 1, 3)]
    # Two entries of one manager in one version are one entry: the last counts.
    assert write_managers(read_managers(shuffled[1:])) == entries[:6]


def test_for_an_apply_the_version_is_no_part_of_the_identity() -> None:
    managers = read_managers([entry("a", operation="Apply"), entry("a", operation="Apply", apiVersion="v2")])
    assert [(identity.version, owned.version) for identity, owned in managers.items()] == [("", "v2")]


def test_times_are_stored_in_seconds_of_utc() -> None:
    [owned] = read_managers([entry("a", time="2026-01-01T01:00:00.999+01:00")]).values()
    assert owned.time == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("invalid", "text"),
    [
        ({"operation": "Delete"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 1"),
        ({"fieldsType": "X"}, 'invalid fieldsType "X" in managed fields entry 1'),
        ({"fieldsV1": {"x": {}}}, "key must be 2 characters long"),
    ],
)
def test_invalid_entries_are_rejected(invalid: Json, text: str) -> None:
    with pytest.raises(PathElementError, match=text):
        read_managers([entry("a"), {**entry("b"), **invalid}])


def test_messages_name_manager_subresource_and_version() -> None:
    assert str(Identity("m", "Apply", "", "")) == '"m"'
    assert str(Identity("m", "Update", "apps/v1", "")) == '"m" using apps/v1'
    assert str(Identity("m", "Update", "apps/v1", "status")) == '"m" with subresource "status" using apps/v1'


@pytest.mark.parametrize(
    ("desired", "agent", "name"),
    [
        ("me", "kubectl/v1", "me"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "curl", "curl"),
        ("", "a\tb\x00c/1", "abc"),
        ("", "é" * 100, "é" * 64),
        ("", "", ""),
    ],
)
def test_the_manager_is_the_field_manager_or_the_user_agent(desired: str, agent: str, name: str) -> None:
    assert manager_name(desired, agent) == name


REPLICAS = {"apps/v1": "spec.replicas", "apps/v0": None}


def test_a_scale_shows_the_owners_of_the_replicas() -> None:
    owner = entry(
        "a", {"f:spec": {"f:replicas": {}, "f:paused": {}}}, apiVersion="apps/v1", time="2026-01-01T00:00:00Z"
    )
    others = [entry("b", {"f:spec": {"f:paused": {}}}, apiVersion="apps/v1"), entry("c", apiVersion="apps/v0")]
    [expected] = entries_of_scale([owner, *others], REPLICAS)
    assert expected == {**owner, "apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}


def test_a_manager_removed_from_the_scale_loses_the_replicas() -> None:
    before = [entry("a", {"f:spec": {"f:replicas": {}, "f:paused": {}}}, apiVersion="apps/v1", operation="Apply")]
    gained = [entry("b", {"f:spec": {"f:replicas": {}}}, apiVersion="autoscaling/v1", subresource="scale")]
    after = entries_of_object(before, gained, api_version="apps/v1", replicas=REPLICAS)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"], e.get("subresource")) for e in after] == [
        ("a", "apps/v1", {"f:spec": {"f:paused": {}}}, None),
        ("b", "apps/v1", {"f:spec": {"f:replicas": {}}}, "scale"),
    ]
    assert "time" not in after[1]


def test_a_manager_still_in_the_scale_is_unchanged() -> None:
    before = [entry("a", {"f:spec": {"f:replicas": {}}}, apiVersion="apps/v1", operation="Apply")]
    expected = entries_of_scale(before, REPLICAS)
    assert entries_of_object(before, expected, api_version="apps/v1", replicas=REPLICAS) == before


def test_entries_of_versions_that_are_not_known_are_dropped() -> None:
    before = [entry("a", apiVersion="apps/v9"), entry("b", apiVersion="apps/v0")]
    assert entries_of_object(before, [], api_version="apps/v1", replicas=REPLICAS) == before[1:]
