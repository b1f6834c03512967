"""The status of a ReplicaSet."""

from __future__ import annotations

from konverge.objects import Key, LabelSelector
from konverge_cluster.workloads.replica_sets.reconciler import ReplicaSetReconciler
from konverge_cluster.workloads.replica_sets.status import Failure, status_of
from workload_objects import NOW, at, pod, replica_set

FAILURE = Failure("FailedCreate", "no room")


def test_pods_are_counted_by_label_readiness_and_time() -> None:
    one = replica_set("web", 4)
    one.spec.min_ready_seconds = 10
    pods = [
        pod("a", ready=at(-10)),
        pod("b", ready=at(-9)),
        pod("c", ready=False),
        pod("d", ready=False, labels={"app": "web2"}),
    ]
    status = status_of(one, pods, terminating=2, failure=None, now=NOW)
    assert (status.replicas, status.fully_labeled_replicas) == (4, 3)
    assert (status.ready_replicas, status.available_replicas) == (2, 1)
    assert (status.terminating_replicas, status.observed_generation) == (2, 1)


def test_zero_counters_are_omitted_as_on_the_server() -> None:
    status = status_of(replica_set("web", 0), [], terminating=0, failure=None, now=NOW)
    assert status.replicas == status.terminating_replicas == 0
    assert status.ready_replicas is status.available_replicas is status.fully_labeled_replicas is None


def test_a_failure_is_reported_once_and_removed_when_it_is_over() -> None:
    one = replica_set("web")
    one.status = status_of(one, [], terminating=0, failure=FAILURE, now=NOW)
    (condition,) = one.status.conditions
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert (condition.message, condition.last_transition_time) == ("no room", NOW)

    again = status_of(one, [], terminating=0, failure=Failure("FailedCreate", "still none"), now=at(60))
    assert again.conditions == [condition]

    assert status_of(one, [], terminating=0, failure=None, now=at(60)).conditions == []


def test_the_selector_of_a_deleted_replica_set_is_forgotten() -> None:
    """Otherwise memory grows with each ReplicaSet that ever existed."""
    reconciler = ReplicaSetReconciler(lambda: 0.0)
    reconciler._selectors.put(Key("default", "web"), LabelSelector.of({"app": "web"}))
    reconciler.gone(Key("default", "web"))
    assert reconciler._selectors.matching("default", {"app": "web"}) == []
