"""Garbage collection with request faults: the result is the same."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from konverge import Client, crd_for
from konverge.cache import ReflectorOptions
from konverge.client import InProcessTransport
from konverge.testing import run_in_virtual_time
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, connection_reset, status_response
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.garbage import GarbageCollector
from owner_worlds import is_determined
from ownerships import (
    Depot,
    Family,
    Sprocket,
    act,
    client_of,
    family_from,
    raise_family,
    steps_of,
    virtual_clock,
    what_is_left,
)


async def outcome(family: Family, script: FaultScript | None) -> dict[int, Any]:
    """Return the final state of a family, with the garbage collector behind a transport with these faults."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    await client.create(crd_for(Sprocket))
    await client.create(crd_for(Depot))
    line = FaultTransport(InProcessTransport(server.handle), script)
    async with GarbageCollector(Client(line), reflector_options=ReflectorOptions(idle_timeout=3600)).running():
        await asyncio.sleep(5)
        made = await raise_family(client, family, "default")
        await asyncio.sleep(20)
        for step in range(steps_of(family)):
            await act(client, family, made, step)
            await asyncio.sleep(20)
        return await what_is_left(client, made)


def bad_line(random: Random) -> FaultScript:
    """Fail one write in four before the server, and lose the response of one in four."""
    script = FaultScript()
    script.add(lambda asked: asked.method in ("DELETE", "PATCH") and random.random() < 0.25, status_response(500))
    script.add(lambda asked: asked.method in ("DELETE", "PATCH") and random.random() < 0.25, connection_reset())
    return script


@pytest.mark.parametrize("seed", range(4))
def test_request_faults_do_not_change_the_result(seed: int) -> None:
    drawn = (family_from(Random(f"{seed}-{number}"), most=4) for number in range(100))
    family = next(one for one in drawn if is_determined(one))

    # Without asyncio's debug mode: with it, a server and sixty informers take three times as long.
    faulty, plain = (
        run_in_virtual_time(outcome(family, script), debug=False) for script in (bad_line(Random(seed)), None)
    )
    assert faulty == plain
