"""Affinity between pods: a filter for what is required, by the pod and by those that are there; a score for the rest.

Two nodes are near each other, in the sense of a term, if they have the same value of its topology key. Rules:

1. A node fits an affinity term if a pod that *all* affinity terms match is near it. A node without the topology key
   never fits.
2. If no such pod exists anywhere, a pod that matches its own terms fits: somebody has to be the first.
3. A node fits an anti-affinity term if no pod that *this* term matches is near it. Without the key it fits.
4. Anti-affinity is mutual: a pod does not fit near a pod with an anti-affinity term that matches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from konverge_cluster.nodes.scheduling.scores import spread_range
from konverge_cluster.nodes.scheduling.snapshot import NodeCheck, NodeInfo, PodInfo, Rejection, Snapshot
from konverge_cluster.nodes.scheduling.terms import AffinityTerm

__all__ = ["filter_pod_affinity", "score_pod_affinity"]

Domain: TypeAlias = tuple[str, str]
"""A topology key and its value: the nodes that are near each other."""

_NO_AFFINITY: Final = (Rejection("node(s) didn't match pod affinity rules"),)
_ANTI_AFFINITY: Final = (Rejection("node(s) didn't match pod anti-affinity rules", resolvable=True),)
_OTHERS_ANTI_AFFINITY: Final = (Rejection("node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True),)
_REQUIRED_WEIGHT: Final = 1  # of the required affinity of a pod that is there, in scores


def filter_pod_affinity(pod: PodInfo, snapshot: Snapshot) -> NodeCheck | None:
    """Reject nodes that the required affinity or anti-affinity of this pod, or of others to it, excludes."""
    own = pod.affinity
    near = _domains_with_matches(own.required, snapshot)
    apart = _domains_of_any(own.required_anti, snapshot)
    others = _domains_of_others(pod, snapshot)
    if not (own.required or own.required_anti or others):
        return None
    first = not near and _matches_all(own.required, pod, snapshot)

    def check(node: NodeInfo) -> Sequence[Rejection]:
        if not _is_near(own.required, node, near, first=first):
            return _NO_AFFINITY
        if any((term.topology_key, node.labels.get(term.topology_key)) in apart for term in own.required_anti):
            return _ANTI_AFFINITY
        return _OTHERS_ANTI_AFFINITY if any(domain in others for domain in node.labels.items()) else ()

    return check


def score_pod_affinity(pod: PodInfo, snapshot: Snapshot, nodes: Sequence[NodeInfo]) -> Mapping[str, int] | None:
    """Prefer nodes near pods that preferred terms match, of this pod and of those that are there."""
    weights: Counter[Domain] = Counter()
    own = pod.affinity
    every = snapshot.pods if own.preferred or own.preferred_anti else snapshot.pods_with_affinity
    for node in snapshot.nodes:
        for other in every.get(node.name, ()):
            for term, sign in (*((one, 1) for one in own.preferred), *((one, -1) for one in own.preferred_anti)):
                _weigh(weights, term, sign * term.weight, other, node, snapshot)
            _weigh_wishes(weights, other, pod, node, snapshot)
    if not weights:
        return None
    return spread_range({node.name: sum(weights.get(one, 0) for one in node.labels.items()) for node in nodes})


def _weigh_wishes(weights: Counter[Domain], other: PodInfo, pod: PodInfo, node: NodeInfo, snapshot: Snapshot) -> None:
    """Add the weights of the terms that a pod on a node has about the pod to schedule."""
    for term in other.affinity.required:
        _weigh(weights, term, _REQUIRED_WEIGHT, pod, node, snapshot)
    for term in other.affinity.preferred:
        _weigh(weights, term, term.weight, pod, node, snapshot)
    for term in other.affinity.preferred_anti:
        _weigh(weights, term, -term.weight, pod, node, snapshot)


def _weigh(
    weights: Counter[Domain], term: AffinityTerm, weight: int, pod: PodInfo, node: NodeInfo, snapshot: Snapshot
) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None and _matches(term, pod, snapshot):
        weights[(term.topology_key, value)] += weight


def _is_near(terms: Iterable[AffinityTerm], node: NodeInfo, near: set[Domain], *, first: bool) -> bool:
    keys = [term.topology_key for term in terms]
    if any(key not in node.labels for key in keys):
        return False
    return first or all((key, node.labels[key]) in near for key in keys)


def _domains_with_matches(terms: Sequence[AffinityTerm], snapshot: Snapshot) -> set[Domain]:
    """Return the domains of all keys with a pod that all terms match."""
    found: set[Domain] = set()
    for node in snapshot.nodes if terms else ():
        if any(_matches_all(terms, pod, snapshot) for pod in snapshot.pods.get(node.name, ())):
            found |= _domains(terms, node)
    return found


def _domains_of_any(terms: Sequence[AffinityTerm], snapshot: Snapshot) -> set[Domain]:
    """Return the domains with a pod that the term of that domain's key matches."""
    found: set[Domain] = set()
    for node in snapshot.nodes if terms else ():
        for pod in snapshot.pods.get(node.name, ()):
            found |= _domains([term for term in terms if _matches(term, pod, snapshot)], node)
    return found


def _domains_of_others(pod: PodInfo, snapshot: Snapshot) -> set[Domain]:
    """Return the domains of pods whose anti-affinity matches this pod."""
    found: set[Domain] = set()
    for node in snapshot.nodes:
        for other in snapshot.pods_with_affinity.get(node.name, ()):
            found |= _domains([term for term in other.affinity.required_anti if _matches(term, pod, snapshot)], node)
    return found


def _domains(terms: Iterable[AffinityTerm], node: NodeInfo) -> set[Domain]:
    return {(term.topology_key, node.labels[term.topology_key]) for term in terms if term.topology_key in node.labels}


def _matches_all(terms: Sequence[AffinityTerm], pod: PodInfo, snapshot: Snapshot) -> bool:
    return bool(terms) and all(_matches(term, pod, snapshot) for term in terms)


def _matches(term: AffinityTerm, pod: PodInfo, snapshot: Snapshot) -> bool:
    return term.matches(pod.namespace, pod.labels, snapshot.namespaces)
