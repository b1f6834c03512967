"""How a cluster is formed: once, of empty nodes whose ids were recorded before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.engine import Engine
from konverge_operators.redis.cluster.slots import SLOTS, initial_slots
from konverge_operators.redis.cluster.views import Node, View, is_empty

__all__ = ["Step", "form", "meet", "some_names"]


class Step(NamedTuple):
    """What is under way: the phase that it stands for, and a message."""

    phase: ClusterPhase
    message: str


async def form(cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Form a new cluster of empty nodes, or take over the one that the nodes are. The spec may change meanwhile."""
    status, phase = cluster.status, ClusterPhase.INITIALIZING
    if status.formed:
        return None
    if view.unreachable:
        return Step(phase, f"waiting for {some_names(one.pod for one in view.unreachable)}")
    if set(status.forming) != view.by_id.keys():
        return await _record_nodes(cluster, view, engine)
    await meet(view, view.nodes, engine)
    if not all(view.has_addresses(node, view.nodes) for node in view.nodes):
        return Step(phase, "introducing the nodes to each other")
    for number, slots in enumerate(initial_slots(view.shards)):
        await _form_shard(view, number, slots, engine)
    status.formed = view.is_covered and view.is_consistent
    return Step(phase, "assigning slots") if not status.formed else None


async def _record_nodes(cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Record the nodes of the new cluster before they get slots, and those that joined; refuse an old cluster."""
    status, phase = cluster.status, ClusterPhase.INITIALIZING
    if view.is_covered:
        status.formed = True
        return None
    recorded = set(status.forming)
    if recorded - view.by_id.keys() and not any(node.state.keys for node in view.nodes):
        return await _start_again(cluster, view, engine)
    lost_owners = view.owned.keys() - view.by_id.keys()
    is_new = all(is_empty(node.state) for node in view.nodes if node.id not in recorded)
    if is_new and not lost_owners:
        status.forming = sorted(view.by_id)
        return Step(phase, "recorded the nodes of the new cluster")
    if is_new and any(node.state.primary in lost_owners for node in view.nodes):
        await meet(view, [node for node in view.nodes if node.id in recorded], engine)
        return Step(ClusterPhase.FAILING_OVER, "a primary was replaced while the cluster was formed")
    missing = SLOTS - view.covered
    message = f"{missing} slots of an earlier cluster are missing: restore the claims of all its shards"
    return Step(ClusterPhase.FAILED, message)


async def _start_again(cluster: RedisCluster, view: View, engine: Engine) -> Step:
    """Reset the nodes of a new cluster without keys, of which one was replaced. A server with keys refuses that."""
    for node in view.nodes:
        if not is_empty(node.state):
            await engine.reset(node.server)
    cluster.status.forming = []
    return Step(ClusterPhase.INITIALIZING, "a node was replaced: starting again")


async def _form_shard(view: View, number: int, slots: frozenset[int], engine: Engine) -> None:
    """Assign slots without an owner to the primary of a shard, and make the other nodes its replicas."""
    primary = view.primary_of(number)
    if primary is None:
        return  # an election is under way
    if free := slots - view.owners.keys():
        await engine.add_slots(primary.server, free)
    for node in view.shard(number):
        if node.id != primary.id and not node.state.slots and node.state.primary != primary.id:
            await engine.replicate(node.server, primary.id)


async def meet(view: View, nodes: Sequence[Node], engine: Engine) -> bool:
    """Introduce nodes to the first one where they do not know each other by their current addresses."""
    first, met = nodes[0], False
    for node in nodes[1:]:
        if not (view.has_addresses(first, [node]) and view.has_addresses(node, [first])):
            await engine.meet(first.server, node.server)
            met = True
    return met


def some_names(names: Iterable[str]) -> str:
    """Return names for a message: the first three, and how many more there are."""
    found = sorted(names)
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
