"""The order in which pods are deleted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.pods.deletion_order import COST, deletion_cost, job_pods_to_delete, pods_to_delete
from workload_objects import NOW, at, pod


def restarted(count: int, name: str = "c") -> dict[str, object]:
    return {"containerStatuses": [{"name": name, "restartCount": count, "image": "i", "imageID": "", "ready": True}]}


def order(pods: Iterable[Pod], related: Iterable[Pod] = ()) -> list[str]:
    pods = list(pods)
    # One less than all, since all of them are not sorted.
    return [one.name for one in pods_to_delete(pods, len(pods) - 1, related=related, now=NOW)]


PAIRS = {
    "no node": (pod("x", node=""), pod("y", node="n1", ready=False, phase="Pending")),
    "pending before running": (pod("x", phase="Pending"), pod("y", phase="Running")),
    "unknown before running": (pod("x", phase="Unknown", ready=True), pod("y", phase="Running")),
    "not ready": (pod("x", ready=False, annotations={COST: "9"}), pod("y", ready=True)),
    "cheaper": (pod("x", ready=at(-9000), annotations={COST: "-1"}), pod("y", ready=at(-1))),
    "ready for a shorter time": (pod("x", ready=at(-2)), pod("y", ready=at(-2000))),
    "more restarts": (
        pod("x", ready=NOW, status=restarted(3)),
        pod("y", ready=NOW, status=restarted(2), creationTimestamp="2026-01-01T11:59:59Z"),
    ),
    "younger": (pod("x", creationTimestamp="2026-01-01T11:59:00Z"), pod("y")),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_each_rule_decides_where_those_before_it_do_not(pair: tuple[Pod, Pod]) -> None:
    assert order(pair) == ["x"]
    assert order(pair[::-1]) == ["x"]


def test_with_equal_cost_pods_on_a_crowded_node_are_deleted_first() -> None:
    crowded, alone = pod("x", node="n1", ready=at(-2000)), pod("y", node="n2", ready=at(-1))
    related = [crowded, alone, pod("z", node="n1"), pod("gone", node="n2", phase="Failed")]
    assert order([alone, crowded], related) == ["x"]


def test_pods_of_about_the_same_age_are_sorted_by_uid() -> None:
    older, younger = pod("b", ready=at(-1000)), pod("c", ready=at(-900))
    assert order([younger, older]) == ["b"]
    assert [one.name for one in job_pods_to_delete([older, younger], 1)] == ["c"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [("", 0), ("5", 5), ("-7", -7), ("+7", 0), ("07", 0), ("1.5", 0), ("-0", 0), ("2147483648", 0), ("x", 0)],
)
def test_an_invalid_deletion_cost_is_ignored(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", annotations={COST: text})) == cost


def test_when_all_pods_are_deleted_there_is_no_order() -> None:
    pods = [pod("b"), pod("a")]
    assert pods_to_delete(pods, 5, related=[], now=NOW) == pods


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "n1", "n2"]),
            st.sampled_from(["Pending", "Running"]),
            st.sampled_from([None, False, at(-1), at(-5), at(-500), at(-501)]),
            st.integers(0, 2),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_the_choice_does_not_depend_on_the_input_order(
    facts: list[tuple[str, str, object, int]],
) -> None:
    pods = [
        pod(f"p{i}", node=node, phase=phase, ready=ready, annotations={COST: str(cost)})  # type: ignore[arg-type]
        for i, (node, phase, ready, cost) in enumerate(facts)
    ]
    chosen = {frozenset(order(some, pods)) for some in permutations(pods)}
    assert len(chosen) == 1
