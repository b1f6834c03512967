"""How a cluster is formed: once, of empty nodes whose ids were recorded before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.engine import Engine
from konverge_operators.redis.cluster.slots import SLOTS, initial_slots
from konverge_operators.redis.cluster.views import Node, View, is_empty

__all__ = ["Step", "form", "keep_imported", "meet", "replace_lost_primaries", "some_names"]


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
    for number, slots in enumerate(initial_slots(map(cluster.spec.rebalance.weight_of, range(view.shards)))):
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
        await replace_lost_primaries(view, engine)
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


async def replace_lost_primaries(view: View, engine: Engine) -> list[str]:
    """Make replicas primaries whose own is no member any more; return their pods.

    The servers elect no replica that was restarted since, and none at all when they have lost most primaries. That it
    is no member is certain only if all members reply. A replica that does not know which slots were moved away waits.
    """
    lost = {id_: slots for id_, slots in view.owned.items() if id_ not in view.by_id}
    replaced: list[str] = []
    for id_, slots in sorted(lost.items()) if not view.unreachable else ():
        replicas = [node for node in view.active if node.state.primary == id_]
        best = max(replicas, key=lambda node: (node.state.offset, node.state.keys, node.member.pod), default=None)
        if best is not None and not any(node.state.synced for node in replicas) and best.state.claims(id_) <= slots:
            has_votes = 2 * len(lost) < len(view.owned)
            await engine.fail_over(best.server, "FORCE" if has_votes else "TAKEOVER")
            replaced.append(best.member.pod)
    return replaced


async def keep_imported(view: View, engine: Engine) -> Step | None:
    """Make replicas primaries whose own was lost before it owned the slots that it imported.

    Nobody elects a replica of a primary without slots; attached to another one, it would lose the imported keys. While
    a member does not reply, that may be the primary: the replica is left as it is.
    """
    found: dict[str, Node] = {}
    for node in view.active:
        primary = node.state.primary
        if primary and primary not in view.by_id and primary not in view.owned and node.state.keys:
            found[primary] = max(found.get(primary, node), node, key=lambda one: (one.state.offset, one.state.keys))
    if not found:
        return None
    names = some_names(node.member.pod for node in found.values())
    if view.unreachable:
        return Step(ClusterPhase.DEGRADED, f"the primary of {names} does not reply")
    for node in found.values():
        await engine.fail_over(node.server, "TAKEOVER")
    return Step(ClusterPhase.FAILING_OVER, f"{names} keeps what a lost primary had imported")


def some_names(names: Iterable[str]) -> str:
    """Return names for a message: the first three, and how many more there are."""
    found = sorted(names)
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
