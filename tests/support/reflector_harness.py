"""A reflector between an embedded server with injected faults and a recording sink."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from konverge.cache.backoff import Stagger
from konverge.cache.options import ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.client import Client, InProcessTransport
from konverge.objects import Kind
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, RecordedRequest, any_request, lists, watches
from konverge.wire.list_watch import Selection
from recording_sink import RecordingSink
from virtual_server import CONFIG_MAPS, VirtualTimeServer, config_map

__all__ = ["CONFIG_MAP", "ReflectorHarness", "VirtualTimeServer", "config_map", "reflector_harness", "running"]

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


@dataclass
class ReflectorHarness:
    """The parts of the setup, and operations on the server."""

    plane: VirtualTimeServer
    transport: FaultTransport
    reflector: Reflector
    sink: RecordingSink

    @property
    def script(self) -> FaultScript:
        return self.transport.script

    @property
    def lists(self) -> list[RecordedRequest]:
        return self.script.requests(lists("configmaps"))

    @property
    def watches(self) -> list[RecordedRequest]:
        return self.script.requests(watches("configmaps"))

    async def create(self, *names: str) -> None:
        for name in names:
            await self.plane.good("POST", CONFIG_MAPS, config_map(name))

    async def change(self, name: str, value: str = "1") -> None:
        await self.plane.merge(f"{CONFIG_MAPS}/{name}", {"data": {"value": value}})

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.plane.good("DELETE", f"{CONFIG_MAPS}/{name}")

    async def elsewhere(self) -> None:
        """Write to another collection, so that the server's version increases."""
        body = {"metadata": {"generateName": "other-"}}
        await self.plane.good("POST", "/api/v1/namespaces/default/serviceaccounts", body)

    def compact(self) -> None:
        self.plane.server.cluster.storage.compact()

    async def versions(self) -> dict[str, str]:
        """Return the objects of the server as the sink must have them."""
        listing = await self.plane.good("GET", CONFIG_MAPS)
        found = [item["metadata"] for item in listing["items"]]
        return {f"{each['namespace']}/{each['name']}": each["resourceVersion"] for each in found}

    async def check(self) -> None:
        """Check that the sink and the replayed events equal the server."""
        expected = await self.versions()
        assert self.sink.versions() == expected
        replayed: dict[str, str] = {}
        for event in self.sink.events:
            assert (event.type == "ADDED") == (event.name not in replayed), event
            if event.type == "DELETED":
                del replayed[event.name]
            else:
                replayed[event.name] = event.version
        assert {f"default/{name}": version for name, version in replayed.items()} == expected

    def rate(self, *, since: float, until: float) -> float:
        """Return the requests per second in a period; the pages of one list count as one request."""
        requests = [each for each in self.script.requests(any_request, since=since) if each.time < until]
        return len([each for each in requests if "continue" not in each.query]) / (until - since)


@asynccontextmanager
async def running(reflector: Reflector) -> AsyncIterator[None]:
    """Run a reflector while the block runs."""
    task = asyncio.create_task(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


@asynccontextmanager
async def reflector_harness(
    *,
    plane: VirtualTimeServer | None = None,
    start: bool = True,
    selection: Selection | None = None,
    reflector_options: ReflectorOptions | None = None,
    stagger: Stagger | None = None,
    **options: Any,
) -> AsyncIterator[ReflectorHarness]:
    """Watch the config maps of an embedded server's default namespace, on virtual time."""
    plane = plane or VirtualTimeServer()
    transport = FaultTransport(InProcessTransport(plane.server.handle))
    sink = RecordingSink()
    async with Client(transport) as client:
        reflector = Reflector(
            client.collection(CONFIG_MAP, namespace="default", **options),
            sink,
            kind="ConfigMap",
            selection=selection,
            options=reflector_options,
            stagger=stagger,
            random=Random(7),
        )
        found = ReflectorHarness(plane, transport, reflector, sink)
        if not start:
            yield found
            return
        async with running(reflector):
            yield found
