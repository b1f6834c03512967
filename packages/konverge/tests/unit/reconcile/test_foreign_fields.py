"""Fields of other managers: which are listed, and how their paths read."""

from __future__ import annotations

from typing import Any

from konverge.reconcile import ForeignField
from konverge.reconcile.foreign_fields import foreign_fields


def entry(manager: str | None, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields, **more}


def live(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "it", "managedFields": list(entries)}}


def test_fields_are_sorted_and_the_own_ones_are_not_listed() -> None:
    ours = entry("us", {"f:spec": {"f:size": {}, "f:text": {}}})
    theirs = entry("them", {"f:spec": {"f:text": {}, "f:color": {}}})
    assert foreign_fields(live(ours, theirs), "us") == [
        ForeignField(".spec.color", "them"),
        ForeignField(".spec.text", "them", shared=True),
    ]
    assert foreign_fields(live(ours), "us") == []


def test_a_field_is_listed_for_each_manager_and_a_manager_without_a_name_has_none() -> None:
    found = foreign_fields(live(entry("b", {"f:x": {}}), entry("a", {"f:x": {}}), entry(None, {"f:y": {}})), "us")
    assert found == [ForeignField(".x", "a"), ForeignField(".x", "b"), ForeignField(".y", "")]


def test_the_status_is_not_listed_and_a_scale_is() -> None:
    status = entry("kubelet", {"f:status": {"f:phase": {}}, "f:metadata": {"f:labels": {}}}, subresource="status")
    scale = entry("hpa", {"f:spec": {"f:replicas": {}}, "f:status": {"f:replicas": {}}}, subresource="scale")
    assert foreign_fields(live(status, scale), "us") == [ForeignField(".spec.replicas", "hpa")]


def test_items_and_names_with_dots_read_as_hand_over_accepts_them() -> None:
    fields = {
        "f:metadata": {"f:annotations": {".": {}, "f:example.com/size": {}}},
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}},
            "f:tags": {'v:"a"': {}},
        },
    }
    paths = [one.path for one in foreign_fields(live(entry("them", fields)), "us")]
    assert paths == [
        '.metadata.annotations["example.com/size"]',
        '.spec.ports[port=80,protocol="TCP"].name',
        '.spec.tags["a"]',
    ]


def test_objects_and_entries_without_fields_have_none() -> None:
    assert foreign_fields({"apiVersion": "v1", "kind": "Gadget"}, "us") == []
    assert foreign_fields({"metadata": {"name": "it"}}, "us") == []
    assert foreign_fields({"metadata": {"managedFields": None}}, "us") == []
    assert foreign_fields(live({"manager": "them"}, entry("others", {})), "us") == []
