"""Pods that a scheduler places one after the other on the same five nodes, on the embedded and on a real server.

Each case is a list of pods; every decision in it is forced, since a real scheduler chooses among equal nodes at random.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.nodes import SimulatedNode

__all__ = ["CASES", "NODES"]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10"}
NODES = (
    SimulatedNode("a1", 0, CAPACITY, {ZONE: "a", "disk": "slow"}),
    SimulatedNode("a2", 1, CAPACITY, {ZONE: "a", "disk": "fast", "cores": "8"}),
    SimulatedNode("b1", 2, CAPACITY, {ZONE: "b", "disk": "slow"}),
    SimulatedNode("t1", 3, CAPACITY, {ZONE: "b"}, ({"key": "only", "value": "gpu", "effect": "NoSchedule"},)),
    SimulatedNode("n1", 4, {**CAPACITY, "cpu": "1"}),
)

Case = list[dict[str, Any]]


def pod(name: str, *, labels: dict[str, str] | None = None, ports: Any = None, cpu: str = "", **spec: Any) -> Any:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if ports:
        container["ports"] = ports
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def on(node: str) -> dict[str, Any]:
    return {"nodeSelector": {HOST: node}}


def term(app: str, key: str, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def near(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def apart(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def node_terms(part: str, *expressions: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{part: list(expressions)}]}}}}


def spread(key: str, app: str = "web", **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


WEB = {"app": "web"}
NAMED = {"key": "metadata.name", "operator": "In"}

CASES: dict[str, Case] = {
    "resources": [
        pod("selector", nodeSelector={"disk": "none"}),
        pod("too-large", cpu="5"),
        pod("large", cpu="3", **on("a1")),
        pod("no-room", cpu="3", **on("a1")),
        pod("unknown", cpu="2", nodeSelector={"disk": "fast"}),
        pod("too-small", cpu="2", **on("n1")),
    ],
    "node affinity": [
        pod("in", **node_terms("matchExpressions", {"key": "disk", "operator": "In", "values": ["fast"]})),
        pod("greater", **node_terms("matchExpressions", {"key": "cores", "operator": "Gt", "values": ["7"]})),
        pod("less", **node_terms("matchExpressions", {"key": "cores", "operator": "Lt", "values": ["7"]})),
        pod("named", **node_terms("matchFields", {**NAMED, "values": ["b1"]})),
        pod("missing", **node_terms("matchFields", {**NAMED, "values": ["nobody"]})),
        pod("conflict", **node_terms("matchFields", {**NAMED, "values": ["a1"]}, {**NAMED, "values": ["b1"]})),
        pod("tainted", **node_terms("matchFields", {**NAMED, "values": ["t1"]})),
        pod(
            "preferred",
            affinity={
                "nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 9,
                            "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]},
                        }
                    ]
                }
            },
        ),
    ],
    "taints": [
        pod("repelled", **on("t1")),
        pod("tolerated", tolerations=[{"key": "only", "operator": "Exists"}], **on("t1")),
        pod("other-value", tolerations=[{"key": "only", "value": "cpu", "effect": "NoSchedule"}], **on("t1")),
    ],
    "affinity": [
        pod("db", labels={"app": "db"}, **on("b1")),
        pod("near", **near(term("db", HOST))),
        pod("nowhere", **near(term("cache", ZONE))),
        pod("self", labels={"app": "self"}, **near(term("self", "disk")), nodeSelector={"disk": "fast"}),
        pod("with-self", labels={"app": "self"}, **near(term("self", "disk"))),
        pod("all-namespaces", **near(term("db", HOST, namespaceSelector={}))),
        pod("other-namespace", **near(term("db", HOST, namespaces=["kube-system"]))),
        pod("no-namespace", **near(term("db", HOST, namespaceSelector={"matchLabels": {"no": "such"}}))),
    ],
    "anti-affinity": [
        pod("one", labels=WEB, **apart(term("web", ZONE)), **on("a1")),
        pod("two", labels=WEB, **apart(term("web", ZONE)), nodeSelector={"disk": "slow"}),
        pod("three", labels=WEB, **apart(term("web", ZONE)), nodeSelector={"disk": "fast"}),
        pod("repelled-by-others", labels=WEB, nodeSelector={"disk": "fast"}),
        pod("apart", **apart(term("web", ZONE))),
    ],
    "spread": [
        pod("first", labels=WEB, **spread(ZONE), **on("a1")),
        pod("second", labels=WEB, **spread(ZONE)),
        pod("third", labels=WEB, **spread(ZONE, nodeAffinityPolicy="Ignore"), nodeSelector={"disk": "fast"}),
        pod("fourth", labels=WEB, **spread(ZONE, nodeAffinityPolicy="Ignore"), nodeSelector={"disk": "fast"}),
        pod("no-label", labels=WEB, **spread(ZONE), **on("n1")),
        pod("many", labels=WEB, **spread(ZONE, minDomains=3)),
        pod("tainted", labels={"app": "x"}, **spread(HOST, "x", nodeTaintsPolicy="Honor"), **on("a1")),
    ],
    "ports": [
        pod("first", ports=[{"containerPort": 80, "hostPort": 8080}], **on("a1")),
        pod("second", ports=[{"containerPort": 80, "hostPort": 8080}], **on("a1")),
        pod("udp", ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}], **on("a1")),
        pod("address", ports=[{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"}], **on("a1")),
    ],
    "gates": [pod("gated", schedulingGates=[{"name": "example.com/wait"}], **on("a1"))],
}
