"""Ordinals, names, labels and volumes of the pods of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import to_wire
from konverge_cluster.workloads.stateful_sets.identity import (
    claims_of,
    identity_matches,
    new_stateful_pod,
    set_identity,
    storage_matches,
)
from konverge_cluster.workloads.stateful_sets.ordinals import condemned_pods, is_member, ordinal_of, ordinals
from workload_objects import pod, stateful_set

CLAIM = {
    "metadata": {"name": "data", "labels": {"kind": "data", "app": "other"}, "annotations": {"a": "b"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize(
    ("name", "ordinal", "member"),
    [
        ("db-0", 0, True),
        ("db-12", 12, True),
        ("db-007", 7, True),
        ("db", -1, False),
        ("db-", -1, False),
        ("db-x-1", 1, False),
        ("other-1", 1, False),
        ("db-2147483647", 2147483647, True),
        ("db-2147483648", -1, True),
    ],
)
def test_the_ordinal_is_the_number_at_the_end_of_a_name(name: str, ordinal: int, member: bool) -> None:
    assert (ordinal_of(pod(name)), is_member(stateful_set(), pod(name))) == (ordinal, member)


def test_pods_outside_of_the_ordinals_are_condemned_highest_first() -> None:
    moved = stateful_set(2, ordinals={"start": 5})
    assert list(ordinals(moved)) == [5, 6]
    pods = [pod(name) for name in ("db-4", "db-5", "db-6", "db-7", "db-10", "db-2147483648")]
    assert [one.name for one in condemned_pods(moved, pods)] == ["db-10", "db-7", "db-4"]


def test_a_pod_has_name_labels_hostname_and_subdomain() -> None:
    one = stateful_set()
    created = new_stateful_pod(one, one.spec.template, 2, revision="db-abc")
    assert (created.name, created.spec.hostname, created.spec.subdomain) == ("db-2", "db-2", "db")
    assert created.metadata.labels == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "db-abc",
        "statefulset.kubernetes.io/pod-name": "db-2",
    }
    assert [(owner.uid, owner.controller) for owner in created.metadata.owner_references] == [("uid-db", True)]
    assert one.spec.template.spec.hostname is None, "the template is not changed"
    assert one.spec.template.metadata is not None
    assert one.spec.template.metadata.labels == {"app": "web"}


def test_a_volume_of_the_template_is_replaced_by_the_claim_of_the_same_name() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
        },
    }
    one = stateful_set(template=template, volumeClaimTemplates=[CLAIM])
    created = new_stateful_pod(one, one.spec.template, 0, revision="r")
    assert [to_wire(volume) for volume in created.spec.volumes] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert storage_matches(one, created)
    created.spec.volumes.pop(0)
    assert not storage_matches(one, created)


def test_claims_have_the_labels_of_the_selector() -> None:
    (claim,) = claims_of(stateful_set(volumeClaimTemplates=[CLAIM]), pod("db-1"))
    assert (claim.name, claim.namespace) == ("data-db-1", "default")
    assert claim.metadata.labels == {"kind": "data", "app": "web"}
    assert claim.metadata.annotations == {"a": "b"}


def test_the_identity_is_restored() -> None:
    one = pod("db-1")
    assert not identity_matches(stateful_set(), one)
    set_identity(one)
    assert identity_matches(stateful_set(), one)
    assert not identity_matches(stateful_set(), pod("db-01", labels={"statefulset.kubernetes.io/pod-name": "db-01"}))
