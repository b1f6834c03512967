"""Slots on their way: moves between two nodes, and what a crash has left half-open."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from konverge_operators.redis.cluster.engine import Engine
from konverge_operators.redis.cluster.slots import Move, batches
from konverge_operators.redis.cluster.views import Node, View

__all__ = ["finish_moves", "move_slots", "open_moves", "run_moves"]


async def move_slots(engine: Engine, source: Node, target: Node, slots: Collection[int]) -> None:
    """Move slots with their keys. Each step may be repeated: a crash in between leaves them half-open."""
    await engine.set_slots(target.server, slots, "importing", source.id)
    await engine.set_slots(source.server, slots, "migrating", target.id)
    await engine.migrate(source.server, slots, target.server)
    await engine.set_slots(target.server, slots, "node", target.id)
    await engine.set_slots(source.server, slots, "node", target.id)


async def run_moves(engine: Engine, view: View, moves: list[Move], *, at_a_time: int, seconds: float) -> int:
    """Run moves of a plan, a batch between two nodes at a time, until the time is over; return how many were done."""
    loop, done = asyncio.get_running_loop(), 0
    end = loop.time() + seconds
    for batch in batches(moves, at_a_time=at_a_time):
        if loop.time() >= end:
            return done
        source, target = view.by_id[batch[0].source], view.by_id[batch[0].target]
        await move_slots(engine, source, target, [move.slot for move in batch])
        done += len(batch)
    return done


def open_moves(view: View) -> dict[int, str]:
    """Return the slots that a crash has left half-open, with the id of the node that they move to."""
    found: dict[int, str] = {}
    primaries = [node for node in view.nodes if not node.state.primary]
    for node in primaries:
        found |= node.state.migrating
    for node in primaries:
        found |= dict.fromkeys(node.state.importing, node.id)
    return found


async def finish_moves(engine: Engine, view: View, *, at_a_time: int) -> int:
    """Finish the moves that are half-open, and close those without a target; return how many there were.

    Either side may have been replaced by its replica since: the keys are moved from the node that owns the slot now, to
    the primary of the node that it was moving to. A move whose other side does not reply is left alone, unless all
    members reply: then that side no longer exists.
    """
    found = open_moves(view)
    targets = {slot: target.id for slot, id_ in found.items() if (target := view.primary_by_id(id_)) is not None}
    lost = found.keys() - targets.keys()
    if lost and not view.unreachable:
        targets |= await _holders(engine, view, lost)
        await _close(engine, view, lost - targets.keys())
    sides = [Move(slot, view.owners.get(slot, ""), target) for slot, target in sorted(targets.items())]
    for batch in batches(sorted(sides, key=lambda move: (move[1:], move.slot)), at_a_time=at_a_time):
        source, target, slots = (
            view.by_id.get(batch[0].source),
            view.by_id[batch[0].target],
            [one.slot for one in batch],
        )
        if source is target:
            await engine.set_slots(target.server, slots, "node", target.id)
            await _close(engine, view, slots, beside=target)
        elif source is not None:
            await _close(engine, view, slots, beside=source)
            await move_slots(engine, source, target, slots)
    return len(found)


async def _holders(engine: Engine, view: View, slots: Collection[int]) -> dict[int, str]:
    """Return which slots have keys on a primary that does not own them: a replica of the lost target replaced it."""
    found: dict[int, str] = {}
    for node in view.nodes:
        if not node.state.primary:
            held = await engine.slots_with_keys(node.server, slots)
            found |= {slot: node.id for slot in held if view.owners.get(slot) != node.id}
    return found


async def _close(engine: Engine, view: View, slots: Collection[int], *, beside: Node | None = None) -> None:
    """Remove the marks of slots on all primaries beside one."""
    for node in view.nodes:
        marked = (node.state.migrating.keys() | node.state.importing.keys()) & set(slots)
        if marked and node is not beside and not node.state.primary:
            await engine.close_slots(node.server, marked)
