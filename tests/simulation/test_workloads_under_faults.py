"""The built-in controllers of the embedded cluster under faults: they reach the same final state as without them.

They are the operator under test of the simulation kit, on a cluster that runs everything else. Creates and deletes are
not compared: after a lost response a ReplicaSet may have a pod too many for a moment, as in Kubernetes.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import Unstructured
from konverge_cluster.testing import Simulation, simulate
from konverge_cluster.volumes.provisioner import SIMULATED
from simulated_controllers import ClusterWithoutVolumes, ClusterWithoutWorkloads, volume_operator, workload_operator
from stateful_set_scenarios import claim_template, stateful_set
from workload_scenarios import deployment, image, job, service

MANY = int(os.environ.get("KONVERGE_SEEDS", "100"))


def in_default(wire: dict[str, Any]) -> Unstructured:
    return Unstructured({**wire, "metadata": {**wire["metadata"], "namespace": "default"}})


# Deployments, Jobs, Services


def work() -> dict[str, Any]:
    """A Job whose pods run for long enough: after a lost response there may be one too many, and the controller must
    notice it before it succeeds, or the Job has five successes (as in Kubernetes)."""
    wire = job(completions=4, parallelism=2)
    wire["spec"]["template"]["spec"]["containers"][0]["command"] = ["sleep", "20"]
    return wire


WORKLOADS = [in_default(deployment(3)), in_default(service()), in_default(work())]


async def roll_out(sim: Simulation) -> None:
    await sim.client.patch("deployments.apps", "web", image("i:2"))
    await sim.settle()
    pods = await sim.client.list(Pod, labels="app=web")
    assert [pod.spec.containers[0].image for pod in pods] == ["i:2"] * 3
    slices = await sim.client.list("endpointslices.discovery.k8s.io", labels="kubernetes.io/service-name=web")
    addresses = [address for one in slices for end in one["endpoints"] for address in end["addresses"]]
    assert sorted(addresses) == sorted(pod.status.pod_ip or "" for pod in pods)
    work = (await sim.client.get("jobs.batch", "work"))["status"]
    assert work["succeeded"] == 4
    assert [one["type"] for one in work["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert len(await sim.client.list(Pod, labels="kind=work")) == 4


@simulate(workload_operator, samples=WORKLOADS, cluster=ClusterWithoutWorkloads, counts=False, seeds=4, faults=40)
async def test_faults_delay_a_rollout_and_a_job_but_do_not_change_their_final_state(sim: Simulation) -> None:
    await roll_out(sim)


@pytest.mark.faults
@simulate(
    workload_operator,
    samples=WORKLOADS,
    cluster=ClusterWithoutWorkloads,
    counts=False,
    seeds=MANY,
    faults=80,
    each_write=True,
)
async def test_a_rollout_and_a_job_with_many_seeds(sim: Simulation) -> None:
    await roll_out(sim)


# StatefulSets


def stateful_sets(policy: str) -> list[Unstructured]:
    retention = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    claims: dict[str, Any] = {
        "volumeClaimTemplates": [claim_template()],
        "persistentVolumeClaimRetentionPolicy": retention,
    }
    return [in_default(stateful_set(3, podManagementPolicy=policy, **claims))]


async def update_and_scale(sim: Simulation) -> None:
    await sim.client.patch("statefulsets.apps", "db", image("i:2"))
    await sim.settle()
    await sim.client.patch("statefulsets.apps", "db", {"spec": {"replicas": 2}})
    await sim.settle()
    pods = await sim.client.list(Pod, labels="app=web")
    assert {pod.name: pod.spec.containers[0].image for pod in pods} == {"db-0": "i:2", "db-1": "i:2"}
    revisions = await sim.client.list("controllerrevisions.apps")
    assert sorted(one["revision"] for one in revisions) == [1, 2]
    assert len(await sim.client.list(PersistentVolumeClaim)) == 3


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("seeds", [2, pytest.param(MANY, marks=pytest.mark.faults)])
def test_faults_delay_an_update_of_a_stateful_set_but_do_not_change_its_final_state(policy: str, seeds: int) -> None:
    simulate(
        workload_operator,
        samples=stateful_sets(policy),
        cluster=ClusterWithoutWorkloads,
        counts=False,
        seeds=seeds,
        faults=40,
    )(update_and_scale)()


# Volumes


def claim(name: str, size: str = "1Gi", **spec: Any) -> Unstructured:
    resources = {"requests": {"storage": size}}
    whole = {"storageClassName": "plain", "accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    return in_default({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": whole})


def volume(name: str, size: str = "1Gi", **spec: Any) -> Unstructured:
    source = {"hostPath": {"path": "/konverge/none"}}
    whole = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "plain", **source}
    return Unstructured(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**whole, **spec}}
    )


VOLUMES = [
    Unstructured(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "now"},
            "provisioner": SIMULATED,
            "allowVolumeExpansion": True,
        }
    ),
    volume("one"),
    volume("two", "2Gi"),
    volume(
        "temporary", storageClassName="temporary", hostPath={"path": "/tmp/x"}, persistentVolumeReclaimPolicy="Delete"
    ),
    claim("a"),
    claim("b", "2Gi"),
    claim("c", storageClassName="now"),
    claim("d", storageClassName="temporary", volumeName="temporary"),
]


async def expand_and_delete(sim: Simulation) -> None:
    await sim.client.patch(PersistentVolumeClaim, "c", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
    await sim.client.delete(PersistentVolumeClaim, "d")
    await sim.settle()
    claims = await sim.client.list(PersistentVolumeClaim)
    assert {one.name: one.status.phase for one in claims} == dict.fromkeys("abc", "Bound")


@simulate(volume_operator, samples=VOLUMES, cluster=ClusterWithoutVolumes, seeds=6, faults=20)
async def test_faults_delay_claims_and_volumes_but_do_not_change_their_final_state(sim: Simulation) -> None:
    await expand_and_delete(sim)


@pytest.mark.faults
@simulate(volume_operator, samples=VOLUMES, cluster=ClusterWithoutVolumes, seeds=MANY, faults=40, each_write=True)
async def test_claims_and_volumes_with_many_seeds(sim: Simulation) -> None:
    await expand_and_delete(sim)
