"""A collection that is being followed: an embedded server, faults on the way, a reflector, and a mirror at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from embedded_plane import CONFIG_MAPS, Plane, config_map
from konverge.cache.backoff import Patience, Spacing
from konverge.cache.reflector import Reflector
from konverge.client import Client, InProcessTransport
from konverge.objects import Kind
from konverge.testing.fault_transport import FaultyTransport
from konverge.testing.faults import Asked, FaultScript, anything, lists, watches
from konverge.wire.watching import Selection
from mirror import Informer

__all__ = ["CONFIG_MAP", "Followed", "Plane", "config_map", "followed", "running"]

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


@dataclass
class Followed:
    """What a test looks at and turns."""

    plane: Plane
    transport: FaultyTransport
    reflector: Reflector
    mirror: Informer

    @property
    def script(self) -> FaultScript:
        return self.transport.script

    @property
    def lists(self) -> list[Asked]:
        return self.script.asked(lists("configmaps"))

    @property
    def watches(self) -> list[Asked]:
        return self.script.asked(watches("configmaps"))

    async def create(self, *names: str) -> None:
        for name in names:
            await self.plane.good("POST", CONFIG_MAPS, config_map(name))

    async def change(self, name: str, value: str = "1") -> None:
        await self.plane.merge(f"{CONFIG_MAPS}/{name}", {"data": {"value": value}})

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.plane.good("DELETE", f"{CONFIG_MAPS}/{name}")

    async def elsewhere(self) -> None:
        """Write to another collection, so that the server's version moves on."""
        wish = {"metadata": {"generateName": "other-"}}
        await self.plane.good("POST", "/api/v1/namespaces/default/serviceaccounts", wish)

    def compact(self) -> None:
        self.plane.server.cluster.storage.compact()

    async def versions(self) -> dict[str, str]:
        """What the server has, as the mirror should have it."""
        listing = await self.plane.good("GET", CONFIG_MAPS)
        found = [item["metadata"] for item in listing["items"]]
        return {f"{each['namespace']}/{each['name']}": each["resourceVersion"] for each in found}

    async def check(self) -> None:
        """The mirror is equal to the server, and what was told replays to it."""
        expected = await self.versions()
        assert self.mirror.versions() == expected
        replayed: dict[str, str] = {}
        for told in self.mirror.told:
            assert (told.type == "ADDED") == (told.name not in replayed), told
            if told.type == "DELETED":
                del replayed[told.name]
            else:
                replayed[told.name] = told.version
        assert {f"default/{name}": version for name, version in replayed.items()} == expected

    def rate(self, *, since: float, until: float) -> float:
        """Requests a second in a stretch of time, the pages of one list counted as one."""
        asked = [each for each in self.script.asked(anything, since=since) if each.time < until]
        return len([each for each in asked if "continue" not in each.query]) / (until - since)


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
async def followed(
    *,
    plane: Plane | None = None,
    start: bool = True,
    selection: Selection | None = None,
    patience: Patience | None = None,
    spacing: Spacing | None = None,
    **options: Any,
) -> AsyncIterator[Followed]:
    """Follow the config maps of an embedded server's default namespace, on virtual time."""
    plane = plane or Plane()
    transport = FaultyTransport(InProcessTransport(plane.server.handle))
    mirror = Informer()
    async with Client(transport) as client:
        reflector = Reflector(
            client.collection(CONFIG_MAP, namespace="default", **options),
            mirror,
            kind="ConfigMap",
            selection=selection,
            patience=patience,
            spacing=spacing,
            random=Random(7),
        )
        found = Followed(plane, transport, reflector, mirror)
        if not start:
            yield found
            return
        async with running(reflector):
            yield found
