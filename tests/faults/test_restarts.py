"""T12 with a real API server that is really killed: five times, under writes, with twenty watched collections."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from random import Random

import pytest

from konverge.client import Client, RetryPolicy, load_config
from konverge.errors import KonvergeError
from konverge.objects import Unstructured
from konverge.testing import ControlPlane
from konverge.testing.raw_proxy import RawProxy
from konverge.wire.list_watch import Selection
from rigs import CONFIG_MAP, Rig, running

KINDS = 20


@pytest.mark.faults
@pytest.mark.real_time(limit=300)
async def test_t12_five_restarts_of_a_real_server_lose_nothing_and_stay_within_the_connection_rate(
    control_plane: ControlPlane,
) -> None:
    assert control_plane is not None  # the binaries are installed
    with ControlPlane() as plane:
        config = load_config(kubeconfig=plane.kubeconfig)
        async with (
            RawProxy(plane) as proxy,
            Client.connect(proxy.config) as through,
            Client.connect(config, retry=RetryPolicy(attempts=1)) as writer,
            Client.connect(config) as checker,
        ):
            rig = Rig(checker, through, None, "default", 1.0)
            collections = [
                rig.watched_collection(selection=Selection(label_selector=f"n={number}")) for number in range(KINDS)
            ]
            async with running(*(it.reflector for it in collections)):
                await rig.until(lambda: all(it.stats.synced for it in collections), within=30)
                await rig.pass_time(2)
                begin = rig.now()
                async with asyncio.TaskGroup() as tasks:
                    writing = tasks.create_task(_write(writer))
                    for _ in range(5):
                        await rig.pass_time(5)
                        await asyncio.to_thread(plane.stop_apiserver)
                        await asyncio.to_thread(plane.start_apiserver)
                    await rig.pass_time(5)
                    writing.cancel()
                for number, it in enumerate(collections):
                    await rig.becomes_equal(it, within=35, labels=f"n={number}")

                attempts = [time for time in proxy.connections if time >= begin]
                highest = max(_in_a_second(attempts, time) for time in attempts)
                assert highest <= 5
                assert len(attempts) >= 3 * KINDS


def _in_a_second(times: list[float], begin: float) -> int:
    return len([time for time in times if begin <= time < begin + 1])


async def _write(client: Client) -> None:
    """Write fifty times per second; continue while the server is down."""
    random, present = Random(12), dict[str, None]()
    for number in itertools.count():
        with contextlib.suppress(KonvergeError):
            await _write_once(client, random, present, number)
        await asyncio.sleep(0.02)


async def _write_once(client: Client, random: Random, present: dict[str, None], number: int) -> None:
    name = random.choice(list(present)) if present else ""
    if name and random.random() < 0.2:
        del present[name]
        await client.delete(CONFIG_MAP, name, namespace="default", missing_ok=True)
    elif name and random.random() < 0.5:
        await client.patch(CONFIG_MAP, name, {"data": {"value": str(number)}}, namespace="default")
    else:
        present[f"w{number}"] = None
        metadata = {"name": f"w{number}", "namespace": "default", "labels": {"n": str(number % KINDS)}}
        await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))
