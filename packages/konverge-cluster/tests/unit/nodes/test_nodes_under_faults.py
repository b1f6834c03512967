"""Simulated nodes with request faults or restarts: the result is the same."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from konverge import Client
from konverge.client import InProcessTransport
from konverge.objects import Unstructured
from konverge.testing import run_in_virtual_time
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, connection_reset, status_response
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.nodes import Behavior, SimulatedNodes
from node_controllers import node_controllers
from ownerships import client_of, virtual_clock
from running_clusters import pod

BEHAVIOURS = (
    Behavior(image="crash:*", crashes=2),
    Behavior(image="bad:*", pull_fails=True),
    Behavior(image="slow:*", start_after=7, ready_after=7, stops_after=9),
)
PODS = (
    pod("plain"),
    pod("crash", image="crash:1"),
    pod("bad", image="bad:1"),
    pod("slow", image="slow:1"),
    pod("job", restartPolicy="Never"),
    pod("init", initContainers=[{"name": "a", "image": "a"}, {"name": "s", "image": "s", "restartPolicy": "Always"}]),
    pod("unfit", nodeSelector={"no": "such"}),
    pod("leaving", image="slow:1"),
    pod("held", image="slow:1", finalizers=["test.konverge.dev/hold"]),
)


def nodes(client: Client) -> SimulatedNodes:
    made = SimulatedNodes(client, nodes=2, heartbeat=0, clock=virtual_clock)
    made.program(*BEHAVIOURS)
    return made


async def act(client: Client, *, step: int) -> None:
    if step == 0:
        for one in PODS:
            await client.create(Unstructured(one))
    elif step == 1:
        for name in ("leaving", "held"):
            await client.delete("pods", name)


async def outcome(script: FaultScript | None, *, lives: int = 1) -> dict[str, Any]:
    """Return the final state of the pods, with these request faults and this number of restarts."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    await nodes(client).register()
    line = FaultTransport(InProcessTransport(server.handle), script)
    for step in range(3):
        await act(client, step=step)
        for _ in range(lives):
            async with node_controllers(Client(line), virtual_clock), nodes(Client(line)).running():
                await asyncio.sleep(60 / lives)
    found = await client.list("pods", namespace="default")
    assert len({one["status"].get("podIP", one.name) for one in found}) == len(found)
    return {one.name: summary(one) for one in found}


def summary(one: Unstructured) -> Any:
    """Drop times and addresses."""
    status = one["status"]
    every = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    states = {each["name"]: (sorted(each["state"]), each["ready"], each["restartCount"]) for each in every}
    conditions = {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}
    return status["phase"], states, conditions, "deletionTimestamp" in one.metadata


def bad_line(random: Random) -> FaultScript:
    """Fail one write in five before the server, and lose the response of one in five."""
    script = FaultScript()
    script.add(lambda asked: asked.method != "GET" and random.random() < 0.2, status_response(500))
    script.add(lambda asked: asked.method != "GET" and random.random() < 0.2, connection_reset())
    return script


@pytest.mark.parametrize("seed", range(4))
def test_request_faults_do_not_change_the_result(seed: int) -> None:
    faulty, plain = (run_in_virtual_time(outcome(script), debug=False) for script in (bad_line(Random(seed)), None))

    assert faulty == plain
    assert set(plain) == {one.name for one in PODS} - {"leaving"}


@pytest.mark.parametrize("lives", [3, 12])
def test_restarts_of_simulated_nodes_do_not_change_the_result(lives: int) -> None:
    broken, plain = (run_in_virtual_time(outcome(None, lives=count), debug=False) for count in (lives, 1))

    assert broken == plain
