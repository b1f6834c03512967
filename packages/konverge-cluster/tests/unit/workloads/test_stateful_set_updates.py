"""Which pods of a StatefulSet are updated next, and the status that results."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.k8s.apps.v1 import ControllerRevision, StatefulSet
from konverge.k8s.core.v1 import Pod
from konverge.objects import ObjectMeta
from konverge_cluster.workloads.stateful_sets.revisions import (
    Revisions,
    by_number,
    equal_revision,
    new_revision,
    next_number,
    revision_data,
    revisions_to_delete,
    template_of,
)
from konverge_cluster.workloads.stateful_sets.rolling import pods_to_update
from konverge_cluster.workloads.stateful_sets.status import same_status, status_of
from konverge_cluster.workloads.stateful_sets.sync import replicas_of
from workload_objects import NOW, at, pod, stateful_set


def replica(ordinal: int, revision: str = "old", *, ready: bool = True, **more: Any) -> Pod:
    labels = {"app": "web", "controller-revision-hash": revision}
    return pod(f"db-{ordinal}", ready=ready, labels=labels, **more)


def rolling(**options: Any) -> StatefulSet:
    return stateful_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0, **options}})


def revision(name: str, number: int = 1, image: str = "i") -> ControllerRevision:
    template = stateful_set().spec.template
    template.spec.containers[0].image = image
    return ControllerRevision(metadata=ObjectMeta(name=name), data=revision_data(template), revision=number)


OLD, NEW = revision("old"), revision("new", 2, "j")
REVISIONS = Revisions(OLD, NEW, 0)


@pytest.mark.parametrize(
    ("one", "replicas", "expected"),
    [
        (rolling(), [replica(0), replica(1), replica(2)], [2]),
        (rolling(), [replica(0), replica(1), replica(2, "new")], [1]),
        (rolling(), [replica(0), replica(1), replica(2, "new", ready=False)], []),
        (rolling(), [replica(0), replica(1), replica(2, deleting=NOW)], []),
        (rolling(), [replica(0, "new"), replica(1, "new"), replica(2, "new")], []),
        (rolling(), [replica(0), replica(1), replica(2, ready=False)], [2]),
        (rolling(partition=2), [replica(0), replica(1), replica(2, "new")], []),
        (rolling(partition=9), [replica(0), replica(1), replica(2)], []),
        (stateful_set(updateStrategy={"type": "OnDelete"}), [replica(0), replica(1), replica(2)], []),
        (rolling(maxUnavailable=2), [replica(0), replica(1), replica(2)], [2, 1]),
        (rolling(maxUnavailable=2), [replica(0), replica(1), replica(2, "new", ready=False)], [1]),
        (rolling(maxUnavailable=2), [replica(0, ready=False), replica(1, ready=False), replica(2)], []),
        (rolling(maxUnavailable="10%"), [replica(0), replica(1), replica(2)], [2]),
        (rolling(maxUnavailable="70%", partition=2), [replica(0), replica(1), replica(2)], [2]),
    ],
)
def test_pods_are_updated_from_the_highest_ordinal(one: StatefulSet, replicas: list[Pod], expected: list[int]) -> None:
    assert [each.name for each in pods_to_update(one, replicas, "new", NOW)] == [f"db-{each}" for each in expected]


def test_an_updated_pod_that_is_not_ready_for_long_enough_delays_the_next() -> None:
    one = rolling()
    one.spec.min_ready_seconds = 10
    labels = {"controller-revision-hash": "new"}
    replicas = [replica(0), replica(1), pod("db-2", ready=at(-9), labels=labels)]
    assert pods_to_update(one, replicas, "new", NOW) == []
    assert [each.name for each in pods_to_update(one, replicas, "new", at(1))] == ["db-1"]


def test_new_pods_below_the_partition_are_of_the_current_revision() -> None:
    one = rolling(partition=2)
    one.spec.template.spec.containers[0].image = "j"
    replicas = replicas_of(one, [replica(1)], REVISIONS)
    assert [each.name for each in replicas] == ["db-0", "db-1", "db-2"]
    assert [each.metadata.labels["controller-revision-hash"] for each in replicas] == ["old", "old", "new"]
    assert [each.spec.containers[0].image for each in replicas] == ["i", "i", "j"]


def test_the_status_counts_pods_by_revision() -> None:
    pods = [replica(0), replica(1, ready=False), replica(2, "new"), replica(3, "new", deleting=NOW)]
    status = status_of(stateful_set(), pods, revisions=REVISIONS, now=NOW)
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (4, 3, 3)
    assert (status.current_replicas, status.updated_replicas) == (2, 1)
    assert (status.current_revision, status.update_revision, status.collision_count) == ("old", "new", 0)


def test_zero_counters_are_omitted_as_on_the_server() -> None:
    status = status_of(stateful_set(), [], revisions=REVISIONS, now=NOW)
    assert (status.replicas, status.available_replicas) == (0, 0)
    assert status.ready_replicas is status.current_replicas is status.updated_replicas is None


def test_the_update_revision_becomes_current_when_all_pods_are_ready() -> None:
    pods = [replica(number, "new") for number in range(3)]
    status = status_of(stateful_set(), pods, revisions=REVISIONS, now=NOW)
    assert (status.current_revision, status.current_replicas) == ("new", 3)
    waiting = status_of(stateful_set(), [*pods[:2], replica(2, "new", ready=False)], revisions=REVISIONS, now=NOW)
    assert waiting.current_revision == "old"
    by_hand = stateful_set(updateStrategy={"type": "OnDelete"})
    assert status_of(by_hand, pods, revisions=REVISIONS, now=NOW).current_revision == "old"


def test_conditions_of_others_are_no_reason_to_write() -> None:
    one = stateful_set(status={"replicas": 0, "conditions": [{"type": "Mine", "status": "True"}]})
    other = stateful_set(status={"replicas": 0})
    assert same_status(one.status, other.status)
    other.status.replicas = 1
    assert not same_status(one.status, other.status)


def test_a_revision_restores_its_template_and_is_found_by_it() -> None:
    one = stateful_set()
    created = new_revision(one, 4, 0)
    assert created.data == revision_data(one.spec.template)
    assert template_of(created) == one.spec.template
    assert equal_revision([NEW, created], revision_data(one.spec.template)) is created
    assert equal_revision([NEW], revision_data(one.spec.template)) is None
    assert created.name == f"db-{created.metadata.labels['controller.kubernetes.io/hash']}"
    assert new_revision(one, 4, 1).name != created.name, "after a collision it has another name"


def test_revisions_are_numbered_and_the_oldest_unused_are_deleted() -> None:
    history = by_number([revision("c", 3), revision("a", 1), revision("d", 7), revision("b", 2)])
    assert [one.name for one in history] == ["a", "b", "c", "d"]
    assert (next_number(history), next_number([])) == (8, 1)
    one = stateful_set()
    for limit, expected in ((10, []), (2, []), (1, ["a"]), (0, ["a", "c"]), (-1, [])):
        one.spec.revision_history_limit = limit
        assert [each.name for each in revisions_to_delete(one, history, {"b", "d"})] == expected
