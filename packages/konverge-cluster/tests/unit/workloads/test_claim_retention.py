"""The retention policy of claims as owner references."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim
from konverge.objects import OwnerReference, from_wire
from konverge_cluster.workloads.pods.claims import owner_reference
from konverge_cluster.workloads.stateful_sets.retention import (
    has_unexpected_controller,
    is_stale,
    is_up_to_date,
    updated_references,
)
from workload_objects import pod, stateful_set

INSIDE, OUTSIDE = pod("db-0"), pod("db-5")


def policy(deleted: str, scaled: str) -> StatefulSet:
    return stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})


def claim(*references: OwnerReference) -> PersistentVolumeClaim:
    wire: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-0"}}
    made = from_wire(PersistentVolumeClaim, {**wire, "spec": {}})
    made.metadata.owner_references = list(references)
    return made


def reference(kind: str, name: str, uid: str, *, controller: bool = True) -> OwnerReference:
    version = "apps/v1" if kind == "StatefulSet" else "v1"
    return OwnerReference(api_version=version, kind=kind, name=name, uid=uid, controller=controller)


@pytest.mark.parametrize(
    ("deleted", "scaled", "inside", "outside"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["uid-db"], ["uid-db"]),
        ("Retain", "Delete", [], ["uid-db-5"]),
        ("Delete", "Delete", ["uid-db"], ["uid-db-5"]),
    ],
)
def test_the_policy_decides_who_controls_a_claim(
    deleted: str, scaled: str, inside: list[str], outside: list[str]
) -> None:
    one = policy(deleted, scaled)
    others = [owner_reference(one), owner_reference(INSIDE), owner_reference(OUTSIDE)]
    for member, expected in ((INSIDE, inside), (OUTSIDE, outside)):
        for start in (claim(), claim(others[0]), claim(owner_reference(member))):
            assert [each.uid for each in updated_references(start, one, member)] == expected
            have = [each.uid for each in start.metadata.owner_references]
            assert is_up_to_date(start, one, member) == (have == expected)


def test_a_reference_that_does_not_control_is_replaced() -> None:
    one = policy("Delete", "Retain")
    weak = claim(reference("StatefulSet", "db", "uid-db", controller=False))
    assert not is_up_to_date(weak, one, INSIDE)
    assert [each.controller for each in updated_references(weak, one, INSIDE)] == [True]


def test_owners_that_do_not_control_are_kept() -> None:
    one = policy("Delete", "Retain")
    extra = reference("Database", "mine", "uid-mine", controller=False)
    assert [each.uid for each in updated_references(claim(extra), one, INSIDE)] == ["uid-mine", "uid-db"]


def test_a_claim_of_another_controller_is_left_alone() -> None:
    one = policy("Delete", "Delete")
    other = claim(reference("Database", "mine", "uid-mine"))
    assert has_unexpected_controller(other, one, INSIDE)
    assert is_up_to_date(other, one, INSIDE)
    both = claim(reference("Database", "mine", "uid-mine"), owner_reference(one))
    assert not is_up_to_date(both, one, INSIDE), "the own reference is removed"
    assert [each.uid for each in updated_references(both, one, INSIDE)] == ["uid-mine"]
    assert not has_unexpected_controller(other, policy("Retain", "Retain"), INSIDE)


def test_a_claim_of_an_earlier_pod_of_the_same_name_is_stale() -> None:
    one = policy("Retain", "Delete")
    old = claim(reference("Pod", "db-0", "uid-before"))
    assert is_stale(old, INSIDE)
    assert not is_stale(claim(owner_reference(INSIDE)), INSIDE)
    assert not is_stale(claim(reference("Pod", "db-9", "uid-before")), INSIDE)
    assert is_up_to_date(old, one, INSIDE), "it is not changed"
    assert has_unexpected_controller(old, one, INSIDE)
