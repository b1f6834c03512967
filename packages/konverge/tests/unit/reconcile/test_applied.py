"""What one reconcile has applied, and what each apply did."""

from __future__ import annotations

import json
from typing import Any

from konverge import Key, ObjectMeta, Unstructured
from konverge.client import WriteEvent
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import kind_of
from konverge.reconcile import Applied
from konverge.reconcile.applied import AppliedObjects

BOX = ConfigMap(metadata=ObjectMeta(name="box", namespace="default"))


def state(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "box", "resourceVersion": "7"}, "data": data}


def create() -> WriteEvent:
    return WriteEvent("apply", kind_of(ConfigMap), BOX.key, json.dumps(state()).encode(), created=True)


def done(before: dict[str, Any] | None, after: dict[str, Any] | None, *, created: bool = False) -> Applied | None:
    applied = AppliedObjects()
    identity = applied.add(BOX)
    if created:
        applied.record_write(create())
    applied.finish(identity, None if before is None else json.dumps(before).encode(), after)
    return applied.find(BOX, BOX.key)


def test_an_apply_has_created_changed_or_not_changed_an_object() -> None:
    assert done(None, state(a="1"), created=True) == Applied("created")
    assert done(state(a="1"), state(a="2"), created=True) == Applied("created")
    assert done(state(a="1"), state(a="2", b="1")) == Applied("changed", (".data.a", ".data.b"))
    assert done(None, state(a="1")) == Applied("changed")
    assert done(state(a="1"), {**state(a="1"), "status": {"x": 1}}) == Applied("unchanged")
    assert done(state(a="1"), None) == Applied("unchanged")


def test_a_result_reads_as_a_text() -> None:
    assert str(Applied("changed", (".data.a", ".data.b"))) == "changed .data.a, .data.b"
    assert str(Applied("created")) == "created"


def test_an_object_is_identified_by_group_kind_and_key_but_not_by_version() -> None:
    applied = AppliedObjects()
    metadata = {"name": "web", "namespace": "default"}
    web = Unstructured({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    applied.add(web)
    assert web in applied
    assert Unstructured({"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": metadata}) in applied
    assert Unstructured({"apiVersion": "other/v1", "kind": "Deployment", "metadata": metadata}) not in applied
    assert Unstructured({"apiVersion": "apps/v1", "kind": "Other", "metadata": metadata}) not in applied
    metadata = {"name": "web", "namespace": "shop"}
    assert Unstructured({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}) not in applied
    assert len(applied) == 1


def test_an_apply_that_did_not_finish_has_no_result_and_a_create_counts_for_the_last_apply_only() -> None:
    applied = AppliedObjects()
    assert applied.find(BOX, BOX.key) is None
    applied.add(BOX)
    applied.record_write(create())
    assert applied.find(BOX, BOX.key) is None
    identity = applied.add(BOX)
    applied.finish(identity, None, None)
    assert applied.find(BOX, BOX.key) == Applied("unchanged")
    assert applied.find(BOX, Key("shop", "box")) is None
