"""Selection of nodes, and resource accounting."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key
from konverge_cluster.nodes.allocations import Allocations
from konverge_cluster.nodes.scheduler import Unschedulable, select_node
from konverge_cluster.nodes.scheduling.requests import Amounts, amounts, requests_of
from konverge_cluster.nodes.scheduling.snapshot import NodeInfo, PodInfo, Snapshot

ALLOCATABLE = amounts({"cpu": "4", "memory": "8Gi", "pods": "10"})


def node(name: str = "n1", **more: Any) -> NodeInfo:
    return NodeInfo(name, **{"allocatable": ALLOCATABLE, **more})


def spec(cpu: str = "", **more: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}], **more}


def select(spec: dict[str, Any], nodes: list[NodeInfo], used: dict[str, Amounts]) -> str | Unschedulable:
    return select_node(PodInfo("default", spec), Snapshot(nodes, used))


NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def unschedulable(reasons: str, preemption: str) -> Unschedulable:
    """Return the message of kube-scheduler, for one node."""
    return Unschedulable(message(1, f"1 {reasons}", f"1 {preemption}"))


def message(count: int, reasons: str, preemption: str) -> str:
    available = f"0/{count} nodes are available:"
    return f"{available} {reasons}. no new claims to deallocate, preemption: {available} {preemption}."


def terms(*expressions: dict[str, Any], part: str = "matchExpressions") -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{part: list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def test_the_node_with_the_fewest_pods_is_selected() -> None:
    used: dict[str, Amounts] = {"n1": {"pods": 2000}, "n2": {"pods": 1000}}

    assert select(spec(), [node("n1"), node("n2")], used) == "n2"
    assert select(spec(), [node("n2"), node("n1")], {}) == "n1"


def test_without_nodes_nothing_fits() -> None:
    assert select(spec(), [], {}) == Unschedulable("no nodes available to schedule pods")


def test_reasons_are_counted() -> None:
    tainted = node("n2", taints=({"key": "a", "effect": "NoSchedule"},))
    found = select(spec("5"), [node("n1"), tainted, node("n3"), node("n4", unschedulable=True)], {})

    reasons = "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu"
    assert found == Unschedulable(message(4, reasons, f"4 {NOT_HELPFUL}"))


def test_requests_count_against_used_resources() -> None:
    assert select(spec("2"), [node()], {"n1": {"cpu": 2000}}) == "n1"
    assert select(spec("2"), [node()], {"n1": {"cpu": 2001}}) == unschedulable("Insufficient cpu", NO_VICTIMS)
    full = unschedulable("Too many pods", NO_VICTIMS)
    assert select(spec(), [node()], {"n1": {"pods": 10_000}}) == full
    assert isinstance(select({"containers": [_asks("example.com/gpu", "1")]}, [node()], {}), Unschedulable)


def _asks(name: str, amount: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {name: amount}}}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "value": "b"}, True),
        ({"key": "a", "value": "b", "effect": "NoSchedule"}, True),
        ({"key": "a", "value": "b", "effect": "NoExecute"}, False),
        ({"key": "a", "value": "c"}, False),
        ({"key": "x", "operator": "Exists"}, False),
    ],
)
def test_a_taint_repels_pods_that_do_not_tolerate_it(toleration: dict[str, str], fits: bool) -> None:
    tainted = node(taints=({"key": "a", "value": "b", "effect": "NoSchedule"},))

    assert (select(spec(tolerations=[toleration]), [tainted], {}) == "n1") == fits


def test_prefer_no_schedule_repels_no_pod() -> None:
    assert select(spec(), [node(taints=({"key": "a", "effect": "PreferNoSchedule"},))], {}) == "n1"


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        (terms({"key": "zone", "operator": "In", "values": ["a", "b"]}), True),
        (terms({"key": "zone", "operator": "NotIn", "values": ["a"]}), False),
        (terms({"key": "gpu", "operator": "Exists"}), False),
        (terms({"key": "gpu", "operator": "DoesNotExist"}), True),
        (terms({"key": "cores", "operator": "Gt", "values": ["7"]}), True),
        (terms({"key": "cores", "operator": "Lt", "values": ["7"]}), False),
        (terms({"key": "metadata.name", "operator": "In", "values": ["n1"]}, part="matchFields"), True),
        (terms(), False),
    ],
)
def test_selectors_and_required_affinity_choose_nodes(more: dict[str, Any], fits: bool) -> None:
    found = select(spec(**more), [node(labels={"zone": "a", "cores": "8"})], {})

    assert found == ("n1" if fits else unschedulable("node(s) didn't match Pod's node affinity/selector", NOT_HELPFUL))


def test_an_init_container_counts_if_it_needs_more_and_a_sidecar_beside_the_others() -> None:
    init = [{"name": "s", **_cpu("1"), "restartPolicy": "Always"}, {"name": "i", **_cpu("5")}]
    wanted = {"containers": [_cpu("2"), _cpu("2")], "initContainers": init, "overhead": {"cpu": "100m"}}

    assert requests_of(wanted) == {"cpu": 6100, "pods": 1000}
    assert requests_of({**wanted, "initContainers": init[:1]}) == {"cpu": 5100, "pods": 1000}


def _cpu(amount: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": amount}}}


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=60))
def test_addresses_are_never_shared_and_are_released(acts: list[tuple[int, bool]]) -> None:
    allocations, network = Allocations(), IPv4Network("10.0.0.0/28")
    there: dict[str, str] = {}
    for number, comes in acts:
        uid = f"u{number}"
        if comes:
            allocations.add(uid, Key("default", uid), "n1", {"cpu": 100})
            there[uid] = allocations.address(uid, network)
        else:
            assert allocations.remove(uid) == (uid in there)
            there.pop(uid, None)
        assert len(set(there.values())) == len(there)
        assert allocations.used.get("n1", {}).get("cpu", 0) == 100 * len(there)
        assert set(allocations.keys("n1")) == {Key("default", one) for one in there}


def test_a_full_network_raises_an_error() -> None:
    allocations, network = Allocations(), IPv4Network("10.0.0.0/29")
    for number in range(6):
        allocations.add(f"u{number}", Key("default", "x"), "n1", {})
    for number in range(5):
        allocations.address(f"u{number}", network)

    with pytest.raises(ValueError, match="node n1 has no address left in"):
        allocations.address("u5", network)
