"""The steps of a cluster: each looks at what is observed, does what comes next, and says what is under way.

Rules that hold here:

1. A cluster is formed only of nodes without slots, keys and epoch, whose ids were recorded before, and only once.
2. No step depends on what an earlier one remembers: progress is read from the nodes. Every step may be repeated.
3. A node loses its slots only to another node that has them, and is forgotten or reset only without slots.

Which server is believed when they disagree: designs/0023-redis-recovery.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from konverge.objects import Quantity
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.engine import Engine, Unreachable
from konverge_operators.redis.cluster.forming import Step, form, keep_imported, meet, replace_lost_primaries, some_names
from konverge_operators.redis.cluster.moves import finish_moves, run_moves
from konverge_operators.redis.cluster.slots import SLOTS, is_balanced, plan_moves
from konverge_operators.redis.cluster.views import Node, View

__all__ = ["advance", "next_update"]

_MOVE_SECONDS = 20.0
"""For how long one reconcile moves slots."""


async def advance(cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Do what comes next; return what is under way, None if the cluster is as desired."""
    steps: tuple[Callable[[RedisCluster, View, Engine], Awaitable[Step | None]], ...] = (
        form,
        _introduce,
        _check_coverage,
        _wait_for_owners,
        _finish_moves,
        _attach_replicas,
        _replace_excess_primaries,
        _forget_lost,
        _rebalance,
        _retire,
    )
    try:
        for step in steps:
            found = await step(cluster, view, engine)
            if found is not None:
                return found
    except Unreachable as error:
        return Step(ClusterPhase.DEGRADED if cluster.status.formed else ClusterPhase.INITIALIZING, str(error))
    if view.unreachable:
        return _missing(cluster, view)
    if behind := [node.member.pod for node in view.active if not node.state.synced]:
        return Step(ClusterPhase.DEGRADED, f"{some_names(behind)} has no connection to its primary")
    if not view.is_consistent:
        await _claim_again(view, engine)
        return Step(ClusterPhase.REBALANCING, "the servers do not know all owners of slots yet")
    return None


async def _claim_again(view: View, engine: Engine) -> None:
    """Let owners claim their slots again, where a server knows former owners by a later epoch.

    It was away when the slots were moved, and the former owner got that epoch since: Redis before 7.2 never learns it.
    """
    peers = [peer for node in view.active for peer in node.state.peers.items()]
    for id_, slots in view.owned.items():
        owner = view.by_id[id_]
        if any(other != id_ and peer.epoch > owner.state.epoch and peer.slots & slots for other, peer in peers):
            await engine.raise_epoch(owner.server)


def _missing(cluster: RedisCluster, view: View) -> Step:
    """Return what is under way while members do not reply: new ones start, or others have failed."""
    known = {one.pod for one in cluster.status.nodes if one.id}
    failed = [one.pod for one in view.unreachable if one.pod in known]
    if failed:
        return Step(ClusterPhase.DEGRADED, f"no reply from {some_names(failed)}")
    return Step(ClusterPhase.SCALING, f"waiting for {some_names(one.pod for one in view.unreachable)}")


def next_update(view: View) -> tuple[Node, Node | None] | None:
    """Return the next node with an old template, and for a primary with replicas the one that replaces it first."""
    for number in range(view.shards):
        nodes = sorted(view.shard(number), key=lambda node: (not node.state.primary, node.member.pod))
        for node in nodes:
            if node.member.outdated:
                replicas = [one for one in nodes if one.state.primary == node.id]
                return node, (replicas[0] if replicas else None)
    return None


async def _introduce(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Introduce new nodes, and those that came back with another address; refuse one with slots of another cluster."""
    nodes = sorted(view.active, key=lambda node: (-len(node.state.slots), node.member.pod))
    if not nodes:
        return Step(ClusterPhase.SLOTS_UNCOVERED, "no server replies")
    known = {nodes[0].id, *nodes[0].state.peers}
    foreign = [one for one in nodes if one.id not in known and one.state.slots and nodes[0].id not in one.state.peers]
    if foreign:
        message = f"{some_names(one.member.pod for one in foreign)} has slots of another cluster: delete its claim"
        return Step(ClusterPhase.DEGRADED, message)
    new = any(one.id not in known for one in nodes)
    if await meet(view, nodes, engine) or not all(view.has_addresses(node, nodes) for node in nodes):
        return Step(ClusterPhase.SCALING if new else ClusterPhase.DEGRADED, "introducing nodes")
    return None


async def _check_coverage(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Wait while slots have no owner that replies: the servers elect a replica, or the data is missing."""
    if view.is_covered:
        return await keep_imported(view, engine)
    missing = SLOTS - view.covered
    if replaced := await replace_lost_primaries(view, engine):
        return Step(ClusterPhase.FAILING_OVER, f"{some_names(replaced)} replaces a primary without data")
    replicated = {node.state.primary for node in view.nodes if node.state.synced or node.state.keys}
    waiting = sum(len(slots) for id_, slots in view.owned.items() if id_ not in view.by_id and id_ in replicated)
    if waiting == missing:
        return Step(ClusterPhase.FAILING_OVER, f"the primary of {missing} slots does not reply")
    return Step(ClusterPhase.SLOTS_UNCOVERED, f"{missing} slots have no server that replies")


async def _wait_for_owners(_cluster: RedisCluster, view: View, _engine: Engine) -> Step | None:
    """Wait while a primary claims slots that were moved away: the end of an import would make its claim the latest."""
    stale = [node.member.pod for node in view.active if node.state.slots - view.owned.get(node.id, frozenset())]
    message = f"{some_names(stale)} does not know yet that slots were moved away"
    return Step(ClusterPhase.REBALANCING, message) if stale else None


async def _finish_moves(cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    found = await finish_moves(engine, view, at_a_time=cluster.spec.rebalance.max_concurrent)
    return Step(ClusterPhase.REBALANCING, f"finishing the moves of {found} slots") if found else None


async def _attach_replicas(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Make every node of a shard a replica of its primary, those with slots aside.

    A server that learns a new address of its primary from others goes on connecting to the old one: it is told again.
    """
    attached: list[str] = []
    for number in range(view.shards):
        primary = view.primary_of(number)
        others = [one for one in view.shard(number) if one is not primary and not one.state.slots]
        for node in others if primary is not None else ():
            if primary is not None and (node.state.primary != primary.id or _connects_elsewhere(node, primary)):
                await engine.replicate(node.server, primary.id)
                attached.append(node.member.pod)
    return Step(ClusterPhase.SCALING, f"attaching {some_names(attached)}") if attached else None


def _connects_elsewhere(replica: Node, primary: Node) -> bool:
    return not replica.state.synced and replica.state.primary_host not in ("", primary.server.host)


async def _replace_excess_primaries(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Make another member of a shard its primary, if the primary is a pod that goes."""
    replaced: list[str] = []
    for number in range(view.shards):
        primary = view.primary_of(number)
        if primary is not None and primary.member.excess:
            replicas = [one for one in view.shard(number) if one.state.primary == primary.id and one.state.synced]
            replaced += [primary.member.pod]
            for replica in [one for one in replicas if not one.member.excess][:1]:
                await engine.fail_over(replica.server)
    return Step(ClusterPhase.SCALING, f"replacing {some_names(replaced)} as primary") if replaced else None


async def _forget_lost(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Forget nodes that no member is any more, once all members reply and those nodes have no slots."""
    if view.unreachable:
        return None
    lost = {id_ for node in view.active for id_ in node.state.peers} - view.by_id.keys() - view.owned.keys()
    lost -= {node.state.primary for node in view.active}  # a replica is attached elsewhere, or reset, before
    for node in view.active:
        for id_ in sorted(lost & node.state.peers.keys()):
            await engine.forget(node.server, id_)
    return Step(ClusterPhase.SCALING, f"forgetting {len(lost)} lost nodes") if lost else None


async def _rebalance(cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Move slots from removed shards, and between the others where they differ too much."""
    status, options = cluster.status.rebalance, cluster.spec.rebalance
    primaries = [view.primary_of(number) for number in range(view.shards)]
    weights = {node.id: options.weight_of(number) for number, node in enumerate(primaries) if node is not None}
    if len(weights) < view.shards:
        return None  # a shard without primary is reported by its members
    draining = any(view.owned.keys() - weights.keys())
    if not draining and (not options.auto or is_balanced(view.owned, weights, threshold=options.threshold)):
        status.planned = status.moved = 0
        return None
    if draining and (refusal := _refuse_drain(cluster, view)):
        return Step(ClusterPhase.FAILED, refusal)
    moves = plan_moves(view.owned, weights)
    status.planned = len(moves)
    done = await run_moves(engine, view, moves, at_a_time=options.max_concurrent, seconds=_MOVE_SECONDS)
    status.planned, status.moved = len(moves) - done, status.moved + done
    phase = ClusterPhase.SCALING if draining else ClusterPhase.REBALANCING
    return Step(phase, f"{status.planned} slots are left to move")


def _refuse_drain(cluster: RedisCluster, view: View) -> str:
    """Return why the remaining shards cannot hold the data of all; "" if they can, or if there is no limit."""
    if cluster.spec.max_memory is None:
        return ""
    room = Quantity(str(cluster.spec.max_memory)).whole() * view.shards
    used = sum(view.by_id[id_].state.memory for id_ in view.owned if id_ in view.by_id)
    return f"{view.shards} shards with maxMemory have room for {room} bytes, and {used} are used" if used > room else ""


async def _retire(_cluster: RedisCluster, view: View, engine: Engine) -> Step | None:
    """Forget and reset the nodes of removed shards, replicas first; they have no slots any more [3]."""
    retired = [node for node in view.active if node.shard >= view.shards]
    retired.sort(key=lambda node: (not node.state.primary, node.member.pod))
    staying = [node for node in view.active if node.shard < view.shards]
    for node in retired:
        for other in staying:
            if node.id in other.state.peers:
                await engine.forget(other.server, node.id)
        await engine.reset(node.server)
    names = some_names(node.member.pod for node in retired)
    return Step(ClusterPhase.SCALING, f"removing {names}") if retired else None
