"""Which volume fits a claim."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import from_wire
from konverge_cluster.volumes.matching import (
    class_of,
    default_class,
    find_volume,
    find_volume_on_node,
    is_bound_to,
    mismatch,
)


def volume(name: str = "v", size: str = "1Gi", *, phase: str = "Available", **spec: Any) -> PersistentVolume:
    metadata = {"name": name, "labels": spec.pop("labels", {}), **spec.pop("metadata", {})}
    whole = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", **spec}
    return from_wire(PersistentVolume, {"metadata": metadata, "spec": whole, "status": {"phase": phase}})


def claim(size: str = "1Gi", **spec: Any) -> PersistentVolumeClaim:
    metadata = {"name": "c", "namespace": "shop", "uid": "u1"}
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return from_wire(PersistentVolumeClaim, {"metadata": metadata, "spec": whole, "status": {}})


def reference(name: str = "c", uid: str = "u1") -> dict[str, Any]:
    return {"claimRef": {"namespace": "shop", "name": name, "uid": uid}}


def name_of(found: PersistentVolume | None) -> str | None:
    return None if found is None else found.name


def test_the_smallest_volume_that_is_large_enough_fits_best() -> None:
    volumes = [volume("large", "10Gi"), volume("small", "1Gi"), volume("right", "2048Mi")]

    assert name_of(find_volume(claim("2Gi"), volumes)) == "right"
    assert name_of(find_volume(claim("11Gi"), volumes)) is None


def test_fewer_access_modes_win_over_a_smaller_size() -> None:
    volumes = [volume("many", "1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"]), volume("one", "5Gi")]

    assert name_of(find_volume(claim(), volumes)) == "one"
    assert name_of(find_volume(claim(accessModes=["ReadWriteMany"]), volumes)) == "many"


@pytest.mark.parametrize(
    "other",
    [
        volume(phase="Released"),
        volume(phase="Pending"),
        volume(storageClassName="gold"),
        volume(volumeMode="Block"),
        volume(volumeAttributesClassName="fast"),
        volume(accessModes=["ReadOnlyMany"]),
        volume(**reference("other")),
        volume(**reference(uid="another")),
        volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
)
def test_a_volume_that_differs_in_one_property_does_not_fit(other: PersistentVolume) -> None:
    assert find_volume(claim(), [other]) is None


def test_a_selector_applies_to_labels_and_not_to_reserved_volumes() -> None:
    wanted = claim(selector={"matchLabels": {"disk": "fast"}})

    assert name_of(find_volume(wanted, [volume("a"), volume("b", labels={"disk": "fast"})])) == "b"
    assert name_of(find_volume(wanted, [volume("a", **reference(uid="")), volume("b", labels={"disk": "fast"})])) == "a"


def test_only_a_reserved_volume_fits_a_claim_that_waits_for_its_consumer() -> None:
    volumes = [volume("free"), volume("reserved", "9Gi", phase="Pending", **reference(uid=""))]

    assert name_of(find_volume(claim(), volumes, reserved_only=True)) == "reserved"
    assert find_volume(claim(), volumes[:1], reserved_only=True) is None


def test_a_reserved_volume_that_does_not_fit_the_node_excludes_all_others() -> None:
    volumes = [volume("free"), volume("reserved", **reference())]

    assert name_of(find_volume_on_node(claim(), volumes, lambda one: True)) == "reserved"
    assert find_volume_on_node(claim(), volumes, lambda one: one.name == "free") is None


def test_a_volume_for_another_claim_of_the_pod_is_excluded() -> None:
    volumes = [volume("a"), volume("b")]

    assert name_of(find_volume_on_node(claim(), volumes, lambda _: True, excluded={"a"})) == "b"


def test_a_reference_without_a_uid_names_any_claim_of_that_name() -> None:
    assert is_bound_to(volume(**reference(uid="")), claim())
    assert is_bound_to(volume(**reference()), claim())
    assert not is_bound_to(volume(**reference(uid="u2")), claim())
    assert not is_bound_to(volume(), claim())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (volume(), ""),
        (volume("v", "1Mi"), "requested PV is too small"),
        (volume(storageClassName="gold"), "storageClassName does not match"),
        (volume(volumeAttributesClassName="fast"), "volumeAttributesClassName does not match"),
        (volume(volumeMode="Block"), "incompatible volumeMode"),
        (volume(accessModes=["ReadOnlyMany"]), "incompatible accessMode"),
        (volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), 'the volume is marked for deletion "v"'),
    ],
)
def test_a_mismatch_with_the_requested_volume_is_explained(other: PersistentVolume, reason: str) -> None:
    assert mismatch(other, claim()) == reason


def test_the_annotation_of_a_class_wins_over_the_field() -> None:
    annotated = volume(
        storageClassName="new", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    )

    assert class_of(annotated) == "old"
    assert class_of(volume(storageClassName="new")) == "new"


def storage_class(name: str, created: str, mark: str = "true") -> StorageClass:
    annotations = {"storageclass.kubernetes.io/is-default-class": mark}
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return from_wire(StorageClass, {"metadata": metadata, "provisioner": "example.com"})


def test_the_newest_default_class_wins_then_the_first_by_name() -> None:
    old, new, other, unmarked = (
        storage_class("a", "2026-01-01T00:00:00Z"),
        storage_class("c", "2026-02-01T00:00:00Z"),
        storage_class("b", "2026-02-01T00:00:00Z"),
        storage_class("d", "2026-03-01T00:00:00Z", "false"),
    )

    found = default_class([old, new, other, unmarked])

    assert found is not None
    assert found.name == "b"
    assert default_class([unmarked]) is None
