"""How fast nodes may be tainted, and which taints they have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from konverge.k8s.core.v1 import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from konverge.objects import ObjectMeta
from konverge_cluster.node_lifecycle.health import Heartbeat, unknown_conditions
from konverge_cluster.node_lifecycle.taints import schedule_taints, set_taints
from konverge_cluster.node_lifecycle.zones import TaintLimiter, eviction_rates

NOW = datetime(2027, 1, 15, tzinfo=UTC)
ZONE = ("", "a")


def node(ready: str = "True", zone: str = "a", **spec: object) -> Node:
    conditions = [NodeCondition(type="Ready", status=ready, last_heartbeat_time=NOW)] if ready else []
    metadata = ObjectMeta(name="n", uid="u", labels={"topology.kubernetes.io/zone": zone}, creation_timestamp=NOW)
    return Node(metadata=metadata, spec=NodeSpec(**spec), status=NodeStatus(conditions=conditions))  # type: ignore[arg-type]


def zone(ready: int, not_ready: int, name: str = "a") -> list[Node]:
    return [*(node("True", name) for _ in range(ready)), *(node("Unknown", name) for _ in range(not_ready))]


@pytest.mark.parametrize(
    ("ready", "not_ready", "rate"),
    [(3, 0, 0.1), (1, 1, 0.1), (1, 2, 0.1), (2, 3, 0.0), (3, 3, 0.1), (0, 1, 0.1), (10, 41, 0.01), (10, 40, 0.0)],
)
def test_the_rate_follows_from_the_share_of_nodes_that_are_not_ready(ready: int, not_ready: int, rate: float) -> None:
    healthy = zone(1, 0, "b")

    assert eviction_rates([*zone(ready, not_ready), *healthy])[ZONE] == rate


def test_no_node_is_tainted_when_no_node_is_ready() -> None:
    assert eviction_rates([*zone(0, 2), *zone(0, 1, "b")]) == {}


def test_one_node_of_a_zone_is_tainted_in_ten_seconds() -> None:
    limiter, rates = TaintLimiter(), {ZONE: 0.1, ("", "b"): 0.1}

    assert limiter.acquire(ZONE, rates, NOW)
    assert not limiter.acquire(ZONE, rates, NOW + timedelta(seconds=9))
    assert limiter.acquire(("", "b"), rates, NOW)
    assert limiter.acquire(ZONE, rates, NOW + timedelta(seconds=10))
    assert not limiter.acquire(ZONE, {ZONE: 0.0}, NOW + timedelta(hours=1))


def test_taints_of_others_stay_in_their_place() -> None:
    own, foreign = Taint(key="own", effect="NoSchedule"), Taint(key="work", effect="NoSchedule")
    other_effect = Taint(key="own", effect="NoExecute")

    found = set_taints([own, foreign, other_effect], ["new"], effect="NoSchedule", owned=["own", "new"], now=NOW)
    assert [(one.key, one.effect) for one in found] == [
        ("work", "NoSchedule"),
        ("own", "NoExecute"),
        ("new", "NoSchedule"),
    ]
    assert set_taints(found, ["new"], effect="NoSchedule", owned=["own", "new"], now=NOW) == found


def test_a_cordoned_node_that_is_not_ready_has_both_taints() -> None:
    keys = [one.key for one in schedule_taints(node("False", unschedulable=True), NOW)]

    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"]


def test_a_renewed_lease_or_a_posted_status_is_a_sign_of_life() -> None:
    first = Heartbeat.first(node(), NOW)
    later = NOW + timedelta(seconds=30)

    assert first.observe(node(), None, later).seconds_left(node(), 50, later) == 20
    assert first.observe(node(), NOW + timedelta(seconds=10), later).seconds_left(node(), 50, later) == 30
    assert first.observe(node(), NOW + timedelta(hours=1), later).seconds_left(node(), 50, later) == 50
    posted = node()
    posted.status.conditions[0].last_heartbeat_time = later
    assert first.observe(posted, None, later).seconds_left(posted, 50, later) == 50


def test_a_node_of_the_same_name_starts_anew() -> None:
    later = NOW + timedelta(seconds=30)
    other = node()
    other.metadata.uid = "other"

    assert Heartbeat.first(node(), NOW).observe(other, None, later).seconds_left(other, 50, later) == 50


def test_a_node_that_never_posted_a_status_is_unknown_after_a_minute() -> None:
    silent = node("")
    later = NOW + timedelta(seconds=59)

    assert Heartbeat.first(silent, later).seconds_left(silent, 50, later) == 1
    found = unknown_conditions(silent, later)
    assert {one.reason for one in found} == {"NodeStatusNeverUpdated"}
    assert unknown_conditions(Node(metadata=silent.metadata, status=NodeStatus(conditions=found)), NOW) == found
