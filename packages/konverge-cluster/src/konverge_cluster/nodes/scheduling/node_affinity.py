"""Node selector and node affinity: filters for what is required, a score for what is preferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from konverge.objects import LabelSelector
from konverge_cluster.nodes.scheduling.scores import normalize
from konverge_cluster.nodes.scheduling.snapshot import NodeCheck, NodeInfo, PodInfo, PodRejected, Rejection, Snapshot

__all__ = ["filter_node_affinity", "filter_node_names", "matches_node", "matches_term", "score_node_affinity"]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def filter_node_names(pod: PodInfo, _: Snapshot) -> NodeCheck | None:
    """Reject the other nodes if every required term names nodes.

    Raises: PodRejected when each term requires two names at once.
    """
    names: set[str] = set()
    terms = _required_terms(pod.spec)
    for term in terms or ():
        found = _node_names(term)
        if found is None:
            return None
        names |= found
    if not terms:
        return None
    if not names:
        raise PodRejected("pod affinity terms conflict")
    rejected = (Rejection("node(s) didn't satisfy plugin(s) [NodeAffinity]"),)
    return lambda node: () if node.name in names else rejected


def filter_node_affinity(pod: PodInfo, _: Snapshot) -> NodeCheck | None:
    """Reject nodes that the node selector or the required node affinity does not match."""
    if not pod.spec.get("nodeSelector") and _required_terms(pod.spec) is None:
        return None
    rejected = (Rejection("node(s) didn't match Pod's node affinity/selector"),)
    return lambda node: () if matches_node(pod, node) else rejected


def score_node_affinity(pod: PodInfo, _: Snapshot, nodes: Sequence[NodeInfo]) -> Mapping[str, int] | None:
    """Prefer nodes that match preferred terms, by the sum of their weights."""
    terms = _node_affinity(pod.spec).get(_PREFERRED)
    if not terms:
        return None
    weights = [(term["preference"], term["weight"]) for term in terms]
    return normalize({node.name: sum(weight for term, weight in weights if matches_term(term, node)) for node in nodes})


def matches_node(pod: PodInfo, node: NodeInfo) -> bool:
    """Report whether a node matches the node selector and the required node affinity of a pod."""
    if not LabelSelector.of(pod.spec.get("nodeSelector") or {}).matches(node.labels):
        return False
    terms = _required_terms(pod.spec)
    return terms is None or any(matches_term(term, node) for term in terms)


def _node_affinity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


def _required_terms(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    required = _node_affinity(spec).get(_REQUIRED)
    return None if required is None else required["nodeSelectorTerms"]


def _node_names(term: Mapping[str, Any]) -> set[str] | None:
    """Return the names of nodes that a term allows, None if it is about other properties only."""
    fields = term.get("matchFields") or ()
    values = [set(one["values"]) for one in fields if one["key"] == "metadata.name" and one["operator"] == "In"]
    return set.intersection(*values) if values else None


def matches_term(term: Mapping[str, Any], node: NodeInfo) -> bool:
    """Report whether a node selector term matches a node."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not (expressions or fields):
        return False
    own_name = {"metadata.name": node.name}
    return all(_matches_expression(one, node.labels) for one in expressions) and all(
        _matches_expression(one, own_name) for one in fields
    )


def _matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    sign = {"Gt": ">", "Lt": "<"}.get(expression["operator"])
    if sign is not None:
        return LabelSelector.parse(f"{expression['key']}{sign}{expression['values'][0]}").matches(labels)
    return LabelSelector.from_spec({"matchExpressions": [expression]}).matches(labels)
