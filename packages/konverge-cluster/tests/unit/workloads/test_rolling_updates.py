"""Rolling updates, decided step by step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.apps.v1 import ReplicaSet
from konverge_cluster.workloads.deployments.proportional_scaling import proportional_steps
from konverge_cluster.workloads.deployments.revisions import MAX
from konverge_cluster.workloads.deployments.rolling import Step, new_replicas, scale_down_steps
from konverge_cluster.workloads.deployments.sizes import Limits, limits_of
from workload_objects import deployment, replica_set


def strategy(surge: Any, unavailable: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (3, "1%", "1%", (1, 0)),
        (2, 0, "1%", (0, 1)),
        (0, "25%", "25%", (0, 0)),
        (4, 0, 9, (0, 4)),
        (4, 2, 1, (2, 1)),
    ],
)
def test_a_surge_is_rounded_up_and_unavailability_down(
    replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]
) -> None:
    limits = limits_of(deployment(replicas, strategy=strategy(surge, unavailable)))
    assert (limits.surge, limits.unavailable) == expected


def test_a_recreate_deployment_has_neither_surge_nor_unavailability() -> None:
    assert limits_of(deployment(5, strategy={"type": "Recreate"})) == Limits(5, 0, 0, rolling=False)


def test_the_new_replica_set_scales_up_within_the_surge() -> None:
    limits = Limits(10, surge=3, unavailable=2)
    assert new_replicas(limits, 0, [replica_set("old", 10)]) == 3
    assert new_replicas(limits, 5, [replica_set("old", 8), replica_set("new", 5)]) == 5
    assert new_replicas(limits, 9, [replica_set("new", 9)]) == 10
    assert new_replicas(limits, 12, [replica_set("new", 12)]) == 10
    assert new_replicas(Limits(10, rolling=False), 0, [replica_set("old", 10)]) == 10


def test_old_replica_sets_scale_down_while_enough_pods_are_available() -> None:
    limits = Limits(10, surge=3, unavailable=2)
    assert scale_down_steps(limits, replica_set("new", 3, available=0), [replica_set("old", 10)]) == [Step("old", 8)]
    assert scale_down_steps(limits, replica_set("new", 5, available=0), [replica_set("old", 8)]) == []
    assert scale_down_steps(limits, replica_set("new", 5, available=5), [replica_set("old", 8)]) == [Step("old", 3)]


def test_unavailable_pods_of_old_replica_sets_are_removed_first_in_a_separate_step() -> None:
    limits = Limits(10, surge=3, unavailable=2)
    old = [
        replica_set("a", 5, available=5, creationTimestamp="2026-01-01T01:00:00Z"),
        replica_set("b", 5, available=1, creationTimestamp="2026-01-01T02:00:00Z"),
    ]
    assert scale_down_steps(limits, replica_set("new", 3, available=3), old) == [Step("b", 1), Step("a", 4)]


def test_a_rollover_scales_down_the_stuck_replica_set() -> None:
    limits = Limits(10, surge=3, unavailable=2)
    stuck = replica_set("stuck", 5, available=0, creationTimestamp="2026-01-01T02:00:00Z")
    good = replica_set("good", 8, creationTimestamp="2026-01-01T01:00:00Z")
    assert new_replicas(limits, 0, [good, stuck]) == 0
    assert scale_down_steps(limits, replica_set("new", 0), [good, stuck]) == [Step("stuck", 0)]


def test_nothing_scales_down_while_a_replica_set_has_not_observed_its_last_step() -> None:
    limits = Limits(5, surge=1, unavailable=1)
    behind = replica_set("old", 3, available=5)
    assert scale_down_steps(limits, replica_set("new", 3, available=3), [behind]) == []


@settings(max_examples=150)
@given(
    st.integers(1, 12),
    st.integers(0, 4),
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_a_rollout_keeps_its_limits_at_every_step_and_ends(
    desired: int, surge: int, unavailable: int, sizes: list[tuple[int, int]], pace: int
) -> None:
    unavailable = min(max(unavailable, 0 if surge else 1), desired)
    limits = Limits(desired, surge, unavailable)
    new = replica_set("new", 0)
    old = [replica_set(f"old{i}", size, available=min(size, ready)) for i, (size, ready) in enumerate(sizes)]
    for turn in range(200):
        before = sum(available_of(one) for one in [new, *old])
        wanted = new_replicas(limits, size_of(new), [new, *old])
        steps = [Step("new", wanted)] if wanted != size_of(new) else scale_down_steps(limits, new, old)
        assert sum(map(size_of, [new, *old])) <= max(limits.max_replicas, sum(size for size, _ in sizes)) or wanted == 0
        for name, size in steps:
            one = next(each for each in [new, *old] if each.name == name)
            one.spec.replicas = size
            # Unavailable pods are removed first.
            one.status.available_replicas = min(available_of(one), size)
        after = sum(available_of(one) for one in [new, *old])
        assert after >= min(before, limits.min_available)
        # Pods become available gradually, and in every third round none does.
        new.status.available_replicas = min(size_of(new), available_of(new) + pace * (turn % 3 > 0))
        if not steps and available_of(new) == desired and not any(map(size_of, old)):
            return
    raise AssertionError("the rollout does not end")


def size_of(one: ReplicaSet) -> int:
    return one.spec.replicas or 0


def available_of(one: ReplicaSet) -> int:
    return one.status.available_replicas or 0


def scaled(name: str, size: int, most: int, hour: int = 1) -> ReplicaSet:
    made = f"2026-01-01T{hour:02}:00:00Z"
    return replica_set(name, size, annotations={MAX: str(most)}, creationTimestamp=made)


def test_scaling_up_during_a_rollout_is_proportional() -> None:
    # 10 replicas with a surge of 3 become 15.
    web = deployment(15, strategy=strategy(3, 2))
    steps = proportional_steps(web, limits_of(web), [scaled("old", 8, 13), scaled("new", 5, 13, 2)])
    assert steps == [Step("old", 11), Step("new", 7)]


def test_scaling_down_during_a_rollout_is_proportional() -> None:
    web = deployment(5, strategy=strategy(3, 2))
    steps = proportional_steps(web, limits_of(web), [scaled("old", 8, 13), scaled("new", 5, 13, 2)])
    assert steps == [Step("old", 5), Step("new", 3)]


def test_of_equal_replica_sets_the_newer_scales_up_and_the_older_scales_down() -> None:
    pair = [scaled("old", 5, 10), scaled("new", 5, 10, 2)]
    up, down = deployment(11, strategy=strategy(0, 1)), deployment(9, strategy=strategy(0, 1))
    assert proportional_steps(up, limits_of(up), pair) == [Step("new", 6), Step("old", 5)]
    assert proportional_steps(down, limits_of(down), pair) == [Step("old", 4), Step("new", 5)]


def test_scaling_to_zero_scales_all_to_zero() -> None:
    web = deployment(0, strategy=strategy(3, 2))
    steps = proportional_steps(web, limits_of(web), [scaled("old", 8, 13), scaled("new", 5, 13, 2)])
    assert steps == [Step("old", 0), Step("new", 0)]


@settings(max_examples=150)
@given(st.integers(1, 40), st.integers(0, 10), st.lists(st.integers(1, 30), min_size=2, max_size=5))
def test_proportional_scaling_fills_what_is_allowed(desired: int, surge: int, sizes: list[int]) -> None:
    """What rounding leaves is taken from the largest one, which cannot fall below zero: then too many are left."""
    web = deployment(desired, strategy=strategy(surge, 1))
    limits = limits_of(web)
    steps = proportional_steps(web, limits, [scaled(f"s{i}", size, sum(sizes)) for i, size in enumerate(sizes)])
    total, smallest = sum(step.size for step in steps), min(step.size for step in steps)
    assert smallest >= 0
    assert total == limits.max_replicas or (smallest == 0 and total > limits.max_replicas)
