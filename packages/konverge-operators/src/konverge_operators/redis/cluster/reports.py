"""What the status of a RedisCluster reports of the servers."""

from __future__ import annotations

from konverge import Context
from konverge_operators.redis.cluster.api import NodeStatus, RedisCluster, SlotsStatus
from konverge_operators.redis.cluster.forming import Step
from konverge_operators.redis.cluster.moves import open_moves
from konverge_operators.redis.cluster.slots import SLOTS, is_balanced
from konverge_operators.redis.cluster.views import Member, View

__all__ = ["record", "set_conditions"]

_MEMORY_UNIT = 16 * 1024 * 1024


def record(cluster: RedisCluster, view: View, step: Step | None) -> None:
    """Set the fields of the status that follow from what was observed, and what is under way."""
    status = cluster.status
    known = {one.pod: one.id for one in status.nodes}
    status.nodes = [_node_status(member, view, known.get(member.pod, "")) for member in view.members]
    status.slots = SlotsStatus(assigned=view.covered, migrating=len(open_moves(view)))
    status.step, status.step_message = (step.phase.value, step.message) if step is not None else ("", "")
    options, primaries = cluster.spec.rebalance, map(view.primary_of, range(view.shards))
    weights = {node.id: options.weight_of(number) for number, node in enumerate(primaries) if node is not None}
    status.balanced = is_balanced(view.owned, weights, threshold=options.threshold)
    status.unsaved = sorted(node.member.pod for node in view.nodes if not node.state.persisted)


def _node_status(member: Member, view: View, known_id: str) -> NodeStatus:
    node = next((one for one in view.nodes if one.member is member), None)
    if node is None:
        return NodeStatus(pod=member.pod, id=known_id, shard=member.shard, link="down")
    state = node.state
    return NodeStatus(
        pod=member.pod,
        id=state.id,
        shard=member.shard,
        role="replica" if state.primary else "primary",
        slots=len(view.owned.get(state.id, ())),
        memory=f"{-(-state.memory // _MEMORY_UNIT) * 16}Mi",
        link="up" if state.synced else "down",
    )


def set_conditions(cluster: RedisCluster, ctx: Context) -> None:
    """Set the conditions beside Ready."""
    status = cluster.status
    assigned = status.slots.assigned == SLOTS
    ctx.condition(cluster, "ClusterFormed", status.formed, reason="Formed" if status.formed else "NotFormed")
    message = f"{status.slots.assigned} of {SLOTS} slots are served"
    reason = "AllSlots" if assigned else "SlotsMissing"
    ctx.condition(cluster, "SlotsAssigned", assigned, reason=reason, message=message)
    ctx.condition(cluster, "Balanced", status.balanced, reason="Balanced" if status.balanced else "NotBalanced")
    saved = not status.unsaved
    message = "" if saved else f"the last write to disk failed on {', '.join(status.unsaved)}"
    ctx.condition(cluster, "PersistenceHealthy", saved, reason="Saved" if saved else "WriteFailed", message=message)
