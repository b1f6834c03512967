"""Facts about pods."""

from __future__ import annotations

import pytest

from konverge_cluster.workloads.pods.facts import (
    finished_at,
    is_active,
    is_available,
    is_terminating,
    restarts,
    until_available,
)
from workload_objects import NOW, at, pod, wire_time


@pytest.mark.parametrize(
    ("phase", "deleting", "active", "terminating"),
    [
        ("Pending", False, True, False),
        ("Running", False, True, False),
        ("Running", True, False, True),
        ("Succeeded", False, False, False),
        ("Failed", True, False, False),
    ],
)
def test_a_pod_is_active_until_it_finishes_or_is_deleted(
    phase: str, deleting: bool, active: bool, terminating: bool
) -> None:
    one = pod("a", phase=phase, deleting=NOW if deleting else None)
    assert (is_active(one), is_terminating(one)) == (active, terminating)


def test_a_pod_is_available_when_it_has_been_ready_for_long_enough() -> None:
    assert is_available(pod("a", ready=at(-10)), 10, NOW)
    assert not is_available(pod("a", ready=at(-9)), 10, NOW)
    assert not is_available(pod("a", ready=False), 0, NOW)
    assert is_available(pod("a", ready=at(0)), 0, NOW)


def test_the_next_pod_to_become_available_sets_the_delay() -> None:
    pods = [pod("a", ready=at(-3)), pod("b", ready=at(-7)), pod("c", ready=at(-20)), pod("d", ready=False)]
    assert until_available(pods, 10, NOW) == 3
    assert until_available(pods[2:], 10, NOW) is None


def test_restarts_of_sidecars_are_counted_separately() -> None:
    one = pod(
        "a",
        spec={"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]},
        status={
            "containerStatuses": [_status("c", 2), _status("d", 5)],
            "initContainerStatuses": [_status("side", 3), _status("init", 9)],
        },
    )
    assert restarts(one) == (5, 3)


def _status(name: str, count: int, **state: object) -> dict[str, object]:
    return {"name": name, "restartCount": count, "image": "i", "imageID": "", "ready": False, "state": state}


def test_a_pod_finishes_with_its_last_container() -> None:
    ends = [{"exitCode": 1, "finishedAt": wire_time(at(-seconds))} for seconds in (50, 40)]
    statuses = [_status("c", 0, terminated=ends[0]), _status("d", 0, terminated=ends[1])]
    assert finished_at(pod("a", status={"containerStatuses": statuses})) == at(-40)
    running = [*statuses, _status("e", 0, running={})]
    assert finished_at(pod("a", ready=None, status={"containerStatuses": running})) == at(-3600)


def test_without_containers_a_pod_finished_when_it_ceased_to_be_ready_or_was_deleted() -> None:
    assert finished_at(pod("a", ready=False)) == at(-600)
    assert finished_at(pod("a", deleting=at(20))) == at(-10)
