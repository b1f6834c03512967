"""Rules between a pod, the pods that are there, and the nodes: affinity, spread, ports; and all of them together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.nodes.scheduler import FILTERS, Unschedulable, select_node
from konverge_cluster.nodes.scheduling.requests import amounts
from konverge_cluster.nodes.scheduling.snapshot import NodeInfo, PodInfo, PodRejected, Snapshot

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


def node(name: str, zone: str = "", **more: Any) -> NodeInfo:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    return NodeInfo(name, labels, **{"allocatable": amounts({"cpu": "4", "pods": "10"}), **more})


def pod(namespace: str = "default", *, terminating: bool = False, ports: Any = (), **more: Any) -> PodInfo:
    labels = more.pop("labels", {})
    spec = {"containers": [{"name": "c", "image": "i", "ports": list(ports)}], **more}
    return PodInfo(namespace, spec, labels, terminating)


def term(key: str = ZONE, selector: Any = ..., **more: Any) -> dict[str, Any]:
    chosen = {"matchLabels": {"app": "web"}} if selector is ... else selector
    return {"topologyKey": key, **more, **({} if chosen is None else {"labelSelector": chosen})}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def prefers(part: str, weight: int, one: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {part: {PREFERRED: [{"weight": weight, "podAffinityTerm": one}]}}}


def spread(key: str = ZONE, skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


WEB: dict[str, Any] = {"labels": {"app": "web"}}
NODES = [node("a1", "a"), node("a2", "a"), node("b1", "b")]
LABELS = {"default": {"team": "x"}, "other": {"team": "y"}}


def select(one: PodInfo, pods: dict[str, list[PodInfo]] | None = None, nodes: Any = NODES) -> str | Unschedulable:
    return select_node(one, Snapshot.of(nodes, pods or {}, namespaces=LABELS))


def message(count: int, text: str, preemption: str) -> str:
    available = f"0/{count} nodes are available:"
    return f"{available} {text}. no new claims to deallocate, preemption: {available} {preemption}."


def reasons(found: str | Unschedulable) -> str:
    assert isinstance(found, Unschedulable)
    return found.message


# Affinity to pods


@pytest.mark.parametrize(
    ("one", "there", "fits"),
    [
        (pod(**near(term())), {"b1": [pod(**WEB)]}, True),
        (pod(**near(term())), {"b1": [pod()]}, False),
        (pod(**near(term(selector=None))), {"b1": [pod(**WEB)]}, False),
        (pod(**near(term(selector={}))), {"b1": [pod()]}, True),
        (pod(**near(term())), {"b1": [pod("other", **WEB)]}, False),
        (pod(**near(term(namespaces=["other"]))), {"b1": [pod("other", **WEB)]}, True),
        (pod(**near(term(namespaces=["other"]))), {"b1": [pod(**WEB)]}, False),
        (pod(**near(term(namespaceSelector={}))), {"b1": [pod("other", **WEB)]}, True),
        (pod(**near(term(namespaceSelector={"matchLabels": {"team": "y"}}))), {"b1": [pod("other", **WEB)]}, True),
        (pod(**near(term(namespaceSelector={"matchLabels": {"team": "y"}}))), {"b1": [pod(**WEB)]}, False),
        (pod(**near(term(), term(HOST))), {"b1": [pod(**WEB)]}, True),
        (pod(**near(term(), term(selector={"matchLabels": {"app": "db"}}))), {"b1": [pod(**WEB)]}, False),
        (pod(**near(term("rack"))), {"b1": [pod(**WEB)]}, False),
    ],
)
def test_required_affinity_finds_the_domain_of_a_matching_pod(one: PodInfo, there: Any, fits: bool) -> None:
    found = select(one, there)

    text = message(3, "3 node(s) didn't match pod affinity rules", f"3 {NOT_HELPFUL}")
    assert found == ("b1" if fits else Unschedulable(text))


def test_the_first_pod_with_affinity_to_itself_fits_on_nodes_with_the_key() -> None:
    nodes = [node("a0"), node("a1", "a")]

    assert select(pod(**near(term()), **WEB), nodes=nodes) == "a1"
    assert isinstance(select(pod(**near(term())), nodes=nodes), Unschedulable)
    assert isinstance(select(pod(**near(term("rack")), **WEB), nodes=nodes), Unschedulable)


def test_anti_affinity_excludes_the_domain_and_not_only_the_node() -> None:
    there = {"a1": [pod(**WEB)]}

    assert select(pod(**apart(term())), there) == "b1"
    assert select(pod(**apart(term(HOST))), there) == "a2"
    assert select(pod(**apart(term("rack"))), there) == "a2"


def test_anti_affinity_of_pods_that_are_there_excludes_their_domain() -> None:
    there = {"a1": [pod(**apart(term()))]}

    assert select(pod(**WEB), there) == "b1"
    assert select(pod("other", **WEB), there) == "a2"
    anywhere = {"a1": [pod(**apart(term(namespaceSelector={"matchLabels": {"team": "y"}})))]}
    assert select(pod("other", **WEB), anywhere) == "b1"


def test_reasons_of_anti_affinity_name_whose_it_is() -> None:
    own = select(pod(**apart(term())), {"a1": [pod(**WEB)], "b1": [pod(**WEB)]})
    others = select(pod(**WEB), {"a1": [pod(**apart(term()))], "b1": [pod(**apart(term()))]})

    assert reasons(own) == message(3, "3 node(s) didn't match pod anti-affinity rules", f"3 {NO_VICTIMS}")
    text = "3 node(s) didn't satisfy existing pods anti-affinity rules"
    assert reasons(others) == message(3, text, f"3 {NO_VICTIMS}")


@pytest.mark.parametrize(
    ("one", "there", "selected"),
    [
        (pod(**prefers("podAffinity", 1, term())), {"b1": [pod(**WEB), pod()]}, "b1"),
        (pod(**prefers("podAntiAffinity", 1, term())), {"a1": [pod(**WEB)], "b1": [pod(), pod()]}, "b1"),
        (pod(**WEB), {"b1": [pod(**prefers("podAffinity", 5, term()))]}, "b1"),
        (pod(**WEB), {"b1": [pod(**near(term()))]}, "b1"),
        (pod(**WEB), {"a1": [pod(**prefers("podAntiAffinity", 5, term()))], "b1": [pod(), pod()]}, "b1"),
    ],
)
def test_preferred_affinity_wins_over_the_number_of_pods(one: PodInfo, there: Any, selected: str) -> None:
    assert select(one, there) == selected


# Node affinity


def test_preferred_node_affinity_selects_by_the_sum_of_weights() -> None:
    def terms(*pairs: tuple[int, str]) -> dict[str, Any]:
        expressions = [(weight, [{"key": ZONE, "operator": "In", "values": [zone]}]) for weight, zone in pairs]
        every = [{"weight": weight, "preference": {"matchExpressions": one}} for weight, one in expressions]
        return {"affinity": {"nodeAffinity": {PREFERRED: every}}}

    assert select(pod(**terms((1, "b")))) == "b1"
    assert select(pod(**terms((3, "a"), (2, "b"), (2, "b")))) == "b1"
    assert select(pod(**terms((1, "c")))) == "a1"


def named(*terms: list[list[str]]) -> dict[str, Any]:
    fields = [[{"key": "metadata.name", "operator": "In", "values": names} for names in one] for one in terms]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": one} for one in fields]}}}}


def test_a_pod_for_named_nodes_reports_the_others_as_such() -> None:
    assert select(pod(**named([["b1"]]))) == "b1"
    assert select(pod(**named([["none"]], [["b1"]]))) == "b1"
    missing = message(3, "3 node(s) didn't satisfy plugin(s) [NodeAffinity]", f"3 {NOT_HELPFUL}")
    assert reasons(select(pod(**named([["none"]])))) == missing
    conflict = "0/3 nodes are available: pod affinity terms conflict. not found"
    assert reasons(select(pod(**named([["a1"], ["b1"]])))) == conflict


def test_a_node_that_prefers_no_pods_is_selected_last() -> None:
    nodes = [node("a1", taints=({"key": "k", "effect": "PreferNoSchedule"},)), node("a2")]

    assert select(pod(), {"a2": [pod()]}, nodes) == "a2"
    assert select(pod(tolerations=[{"operator": "Exists"}]), {"a2": [pod()]}, nodes) == "a1"


# Topology spread


@pytest.mark.parametrize(
    ("constraint", "there", "expected"),
    [
        (spread(), {"a1": [pod(**WEB)]}, "b1"),
        (spread(skew=2), {"a1": [pod(**WEB)], "b1": [pod(), pod()]}, "a2"),
        (spread(HOST), {"a1": [pod(**WEB)], "b1": [pod(**WEB)]}, "a2"),
        (spread(), {"a1": [pod(terminating=True, **WEB)], "b1": [pod(), pod()]}, "a2"),
        (spread(), {"a1": [pod("other", **WEB)], "b1": [pod(), pod()]}, "a2"),
        (spread(labelSelector={}), {"a1": [pod(**WEB)] * 3, "b1": [pod(**WEB)] * 4}, "a2"),
        (spread(minDomains=3), {"a1": [pod(**WEB)], "b1": [pod(**WEB)]}, None),
        (spread(minDomains=2), {"a1": [pod(**WEB)], "b1": [pod(**WEB)]}, "a2"),
        (spread(matchLabelKeys=["hash"]), {"a1": [pod(labels={"app": "web", "hash": "1"})]}, "a2"),
        (spread(matchLabelKeys=["hash"]), {"a1": [pod(labels={"app": "web", "hash": "2"})]}, "b1"),
        (spread(nodeAffinityPolicy="Ignore") | {"nodeSelector": {ZONE: "a"}}, {"a1": [pod(**WEB)]}, None),
        (spread(nodeAffinityPolicy="Honor") | {"nodeSelector": {ZONE: "a"}}, {"a1": [pod(**WEB)]}, "a2"),
    ],
)
def test_a_spread_constraint_limits_the_skew(constraint: Any, there: Any, expected: str | None) -> None:
    found = select(pod(labels={"app": "web", "hash": "2"}, **constraint), there)

    assert (found if isinstance(found, str) else None) == expected


def test_reasons_of_spread_tell_a_missing_label_from_skew() -> None:
    nodes = [node("a1", "a"), node("none"), node("c1", "c", taints=({"key": "k", "effect": "NoSchedule"},))]
    found = select(pod(**spread(), **WEB), {"a1": [pod(**WEB)]}, nodes)

    text = "node(s) didn't match pod topology spread constraints"
    parts = f"1 {text}, 1 {text} (missing required label), 1 node(s) had untolerated taint(s)"
    assert reasons(found) == message(3, parts, f"1 {NO_VICTIMS}, 2 {NOT_HELPFUL}")
    honored = spread(nodeTaintsPolicy="Honor")
    assert select(pod(**honored, **WEB), {"a1": [pod(**WEB)]}, nodes) == "a1"


def test_a_soft_spread_constraint_ranks_domains() -> None:
    soft = spread(whenUnsatisfiable="ScheduleAnyway")
    there = {"a1": [pod(**WEB)], "b1": [pod(), pod(), pod()]}

    assert select(pod(**soft, **WEB), there) == "b1"
    assert select(pod(**soft, **WEB), {"a1": [pod(**WEB)], "b1": [pod(**WEB), pod(**WEB)]}) == "a2"
    assert select(pod(**soft, **WEB), {"a1": [pod(**WEB)]}, [node("none"), node("a1", "a")]) == "a1"
    hosts = spread(HOST, whenUnsatisfiable="ScheduleAnyway")
    assert select(pod(**hosts, **WEB), {"a1": [pod(**WEB)], "a2": [pod(), pod()], "b1": [pod(**WEB)]}) == "a2"


# Ports


@pytest.mark.parametrize(
    ("needed", "conflicts"),
    [
        ({"hostPort": 80}, True),
        ({"hostPort": 81}, False),
        ({"hostPort": 80, "protocol": "UDP"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"containerPort": 80}, False),
    ],
)
def test_a_host_port_is_used_once_on_a_node(needed: dict[str, Any], conflicts: bool) -> None:
    there = {"n": [pod(ports=[{"containerPort": 8080, "hostPort": 80}])]}
    found = select(pod(ports=[needed]), there, [node("n")])

    text = message(1, "1 node(s) didn't have free ports for the requested pod ports", f"1 {NO_VICTIMS}")
    assert found == (Unschedulable(text) if conflicts else "n")


def test_the_same_port_on_two_addresses_is_no_conflict_and_a_sidecar_counts() -> None:
    there = {"n": [pod(ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}])]}
    assert select(pod(ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}]), there, [node("n")]) == "n"

    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
    assert isinstance(select(pod(initContainers=[sidecar]), there, [node("n")]), Unschedulable)
    assert select(pod(initContainers=[{**sidecar, "restartPolicy": None}]), there, [node("n")]) == "n"


def test_a_pod_that_never_preempts_says_so() -> None:
    found = select(pod(preemptionPolicy="Never", nodeSelector={"x": "y"}))

    assert reasons(found).endswith(", preemption: not eligible due to preemptionPolicy=Never.")


# All rules together

APPS = st.sampled_from(["web", "db"])
KEYS = st.sampled_from([ZONE, HOST])
TERMS = st.builds(lambda key, app: term(key, {"matchLabels": {"app": app}}), KEYS, APPS)


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    affinity: dict[str, Any] = {}
    for part in ("podAffinity", "podAntiAffinity"):
        required = draw(st.lists(TERMS, max_size=1))
        affinity[part] = {REQUIRED: required}
    spec: dict[str, Any] = {"affinity": affinity}
    if draw(st.booleans()):
        spec |= spread(draw(KEYS), draw(st.integers(1, 2)))
    ports = [{"hostPort": draw(st.integers(80, 82))}] if draw(st.booleans()) else []
    return pod(labels={"app": draw(APPS)}, ports=ports, **spec)


@given(st.lists(pods(), max_size=12))
def test_a_selected_node_satisfies_every_required_rule(every: list[PodInfo]) -> None:
    nodes = [*NODES, node("c1", taints=({"key": "k", "effect": "NoSchedule"},)), node("d1", unschedulable=True)]
    placed: dict[str, list[PodInfo]] = {}
    for one in every:
        found = select(one, placed, nodes)
        if isinstance(found, str):
            assert found in ("a1", "a2", "b1")
            placed.setdefault(found, []).append(one)
    by_name = {one.name: one for one in nodes}
    flat = [(by_name[name], one) for name, there in placed.items() for one in there]
    for place, one in flat:
        others = [(there, other) for there, other in flat if other is not one]
        for rule in one.affinity.required_anti:
            assert not any(is_near(place, there, rule.topology_key) and meant(rule, other) for there, other in others)
        for rule in one.affinity.required:
            assert any(is_near(place, there, rule.topology_key) and meant(rule, other) for there, other in flat)
        taken = [port for there, other in others if there is place for port in other.host_ports]
        assert not set(one.host_ports) & set(taken)


def is_near(one: NodeInfo, other: NodeInfo, key: str) -> bool:
    return one.labels.get(key) is not None and one.labels.get(key) == other.labels.get(key)


def meant(rule: Any, one: PodInfo) -> bool:
    return bool(rule.selector.matches(one.labels))


@given(pods(), st.lists(pods(), max_size=8))
def test_a_pod_waits_only_if_every_node_is_rejected_by_a_filter(one: PodInfo, there: list[PodInfo]) -> None:
    snapshot = Snapshot.of(NODES, {"a1": there[::2], "b1": there[1::2]}, namespaces=LABELS)
    fitting = []
    for each in NODES:
        try:
            checks = [check for build in FILTERS if (check := build(one, snapshot)) is not None]
        except PodRejected:
            break
        if not any(check(each) for check in checks):
            fitting.append(each.name)

    found = select_node(one, snapshot)
    assert found in fitting if fitting else isinstance(found, Unschedulable)
