"""Slots on their way: moves between two nodes, and what a crash has left half-open."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import groupby

from konverge_operators.redis.cluster.engine import Engine
from konverge_operators.redis.cluster.slots import Move
from konverge_operators.redis.cluster.views import Node, View

__all__ = ["finish_moves", "half_open", "move_slots", "run_moves"]


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
    for (source, target), group in groupby(moves, key=lambda move: (move.source, move.target)):
        slots = [move.slot for move in group]
        for first in range(0, len(slots), at_a_time):
            if loop.time() >= end:
                return done
            batch = slots[first : first + at_a_time]
            await move_slots(engine, view.by_id[source], view.by_id[target], batch)
            done += len(batch)
    return done


def half_open(view: View) -> set[Move]:
    """Return the moves that a crash has left half-open, as either side marks them."""
    found = set()
    for node in view.nodes:
        found |= {Move(slot, node.id, target) for slot, target in node.state.migrating.items()}
        found |= {Move(slot, source, node.id) for slot, source in node.state.importing.items()}
    return found


async def finish_moves(engine: Engine, view: View, *, at_a_time: int) -> int:
    """Finish the moves that are half-open, and close those that no longer make sense; return how many there were.

    A move whose other side does not reply is left alone, unless all members reply: then that side no longer exists.
    """
    moves = sorted(half_open(view), key=lambda move: (move.source, move.target, move.slot))
    for (source_id, target_id), group in groupby(moves, key=lambda move: (move.source, move.target)):
        slots = [move.slot for move in group]
        source, target = view.by_id.get(source_id), view.by_id.get(target_id)
        if source is not None and target is not None:
            await _finish(engine, view, source, target, slots, at_a_time)
        elif not view.unreachable:
            for node in (source, target):
                if node is not None:
                    await engine.close_slots(node.server, slots)
    return len(moves)


async def _finish(engine: Engine, view: View, source: Node, target: Node, slots: list[int], at_a_time: int) -> None:
    moving = [slot for slot in slots if view.owners.get(slot) == source.id]
    moved = [slot for slot in slots if view.owners.get(slot) == target.id]
    others = [slot for slot in slots if view.owners.get(slot) not in (source.id, target.id)]
    for first in range(0, len(moving), at_a_time):
        await move_slots(engine, source, target, moving[first : first + at_a_time])
    if moved:
        await engine.set_slots(target.server, moved, "node", target.id)
        await engine.set_slots(source.server, moved, "node", target.id)
    if others:
        await engine.close_slots(source.server, others)
        await engine.close_slots(target.server, others)
