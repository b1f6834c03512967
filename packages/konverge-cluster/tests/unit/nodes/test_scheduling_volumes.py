"""Where the volumes of a pod let it run: plain decisions."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import from_wire
from konverge_cluster.nodes.scheduler import Unschedulable, select_node
from konverge_cluster.nodes.scheduling.requests import amounts
from konverge_cluster.nodes.scheduling.snapshot import NodeInfo, PodInfo, Snapshot
from konverge_cluster.nodes.scheduling.volumes import PodVolumes

NODES = [NodeInfo(f"n{index}", {"zone": f"z{index}"}, allocatable=amounts({"pods": "10"})) for index in range(3)]
NOT_BOUND = "node(s) didn't find available persistent volumes to bind"
NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"


def volume(name: str, zone: str = "", size: str = "1Gi", **spec: Any) -> PersistentVolume:
    whole: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
    }
    if zone:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
        whole["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    status = {"phase": "Available"}
    return from_wire(PersistentVolume, {"metadata": {"name": name}, "spec": {**whole, **spec}, "status": status})


def claim(name: str = "c", size: str = "1Gi", **annotations: str) -> PersistentVolumeClaim:
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "local"}
    return from_wire(PersistentVolumeClaim, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def classes(provisioner: str = "kubernetes.io/no-provisioner", *zones: str) -> dict[str, StorageClass]:
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}] if zones else []
    wire = {"metadata": {"name": "local"}, "provisioner": provisioner, "allowedTopologies": terms}
    return {"local": from_wire(StorageClass, wire)}


def decide(volumes: PodVolumes) -> str:
    selected = select_node(PodInfo("default", {"containers": []}, volumes=volumes), Snapshot(NODES))
    return selected.message if isinstance(selected, Unschedulable) else selected


def test_a_pod_runs_where_its_bound_volume_is() -> None:
    assert decide(PodVolumes(bound=[volume("v", "z1"), volume("w")])) == "n1"


def test_a_pod_whose_volumes_are_in_two_zones_runs_nowhere() -> None:
    message = decide(PodVolumes(bound=[volume("v", "z1"), volume("w", "z2")]))

    assert message.startswith(f"0/3 nodes are available: 3 {NOT_REACHED}.")


def test_a_missing_volume_excludes_every_node() -> None:
    assert "3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)" in decide(
        PodVolumes(bound=[None])
    )


def test_a_claim_is_bound_to_a_volume_that_the_node_reaches() -> None:
    volumes = PodVolumes(unbound=[claim()], candidates=[volume("v", "z2")], classes=classes())

    assert decide(volumes) == "n2"
    (pair,) = volumes.on_node(NODES[2]).bindings
    assert [one.name for one in pair] == ["v", "c"]
    assert NOT_BOUND in decide(PodVolumes(unbound=[claim()], classes=classes()))


def test_two_claims_of_a_pod_get_two_volumes_the_larger_claim_the_larger_one() -> None:
    candidates = [volume("small"), volume("large", size="5Gi")]
    volumes = PodVolumes(unbound=[claim("b", "5Gi"), claim("a")], candidates=candidates, classes=classes())

    pairs = volumes.on_node(NODES[0]).bindings

    assert [(one.name, other.name) for one, other in pairs] == [("small", "a"), ("large", "b")]


def test_a_claim_without_a_volume_is_provisioned_where_its_class_allows_that() -> None:
    volumes = PodVolumes(unbound=[claim()], classes=classes("example.com", "z1"))

    assert decide(volumes) == "n1"
    assert [one.name for one in volumes.on_node(NODES[1]).to_create] == ["c"]


def test_a_claim_that_is_provisioned_on_a_node_excludes_the_others() -> None:
    selected = claim(**{"volume.kubernetes.io/selected-node": "n2"})

    assert decide(PodVolumes(unbound=[selected], classes=classes("example.com"))) == "n2"


def test_a_volume_for_one_pod_in_use_excludes_every_node_until_that_pod_leaves() -> None:
    message = decide(PodVolumes(in_use=True))

    assert "ReadWriteOncePod access mode already in-use by another pod" in message
    assert "No preemption victims found" in message


@pytest.mark.parametrize(
    "reason", ["pod has unbound immediate PersistentVolumeClaims", 'persistentvolumeclaim "c" not found']
)
def test_a_rejected_pod_has_the_reason_once(reason: str) -> None:
    assert decide(PodVolumes(rejection=reason)) == f"0/3 nodes are available: {reason}. not found"
