"""Which finished pods are deleted when there are too many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from konverge.k8s.core.v1 import Container, Pod, PodSpec, PodStatus
from konverge.objects import Key, ObjectMeta
from konverge_cluster.pod_gc.finished_pods import FinishedPods, is_finished

START = datetime(2027, 1, 15, tzinfo=UTC)


def pod(name: str, second: int = 0, phase: str = "Succeeded", reason: str = "") -> Pod:
    metadata = ObjectMeta(name=name, namespace="default", creation_timestamp=START + timedelta(seconds=second))
    spec = PodSpec(containers=[Container(name="c", image="i")])
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase=phase, reason=reason or None))


@pytest.mark.parametrize(
    ("phase", "finished"), [("", False), ("Pending", False), ("Running", False), ("Failed", True), ("Succeeded", True)]
)
def test_a_pod_is_finished_by_its_phase(phase: str, finished: bool) -> None:
    assert is_finished(pod("p", phase=phase)) == finished


def test_evicted_pods_are_deleted_first_then_the_oldest() -> None:
    pods = FinishedPods()
    for one in (pod("b", 1), pod("a", 1), pod("old", 0), pod("new", 9), pod("evicted", 5, "Failed", "Evicted")):
        pods.put(one)
    pods.put(pod("running", 0, "Running"))

    assert [key.name for key in pods.oldest(1)] == ["evicted", "old", "a", "b"]
    assert pods.oldest(5) == []


def test_a_pod_that_is_gone_does_not_count() -> None:
    pods = FinishedPods()
    pods.put(pod("a"))
    pods.put(pod("b"))
    pods.drop(Key("default", "a"))
    pods.put(pod("b", phase="Running"))

    assert pods.oldest(0) == []
