"""An operator at work on an embedded server, in one process and on virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from konverge import Client, Condition, Controller, CustomResource, Manager, Meta, Spec, Status, crd_for, field
from konverge.client import InProcessTransport, ClientOptions
from konverge.testing.fault_transport import FaultTransport
from konverge_cluster.embedded_server import EmbeddedServer


class GadgetSpec(Spec):
    size: Annotated[int, Meta(ge=0)] = 1
    text: str = ""


class GadgetStatus(Status):
    observed_generation: int = 0
    parts: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Gadget(CustomResource[GadgetSpec, GadgetStatus], group="test.konverge.dev", version="v1"):
    """Something with parts."""


class World:
    """An embedded server, a client of it for the test, and what the operator asked of it."""

    def __init__(self, server: EmbeddedServer | None = None) -> None:
        self.server = server or EmbeddedServer(seed=1)
        self.client = Client(InProcessTransport(self.server.handle), options=ClientOptions(namespace="default"))
        self._seen = 0
        self.way = FaultTransport(InProcessTransport(self.server.handle))

    @classmethod
    def beside(cls, other: World) -> World:
        """Give the same world with a way of its own to the server, for a second operator."""
        return cls(other.server)

    def operator_client(self) -> Client:
        return Client(self.way, options=ClientOptions(namespace="default"))

    @property
    def writes(self) -> list[str]:
        """What the operator wrote since `forget_writes`, as "METHOD path", events and access reviews aside."""
        asked = self.way.script.requests()[self._seen :]
        made = [f"{one.method} {one.path}" for one in asked if one.method != "GET"]
        return [one for one in made if "/events" not in one and "accessreviews" not in one]

    def forget_writes(self) -> None:
        self._seen = len(self.way.script.requests())


def gadget(name: str, **spec: Any) -> Gadget:
    made = Gadget(spec=GadgetSpec(**spec))
    made.metadata.name = name
    made.metadata.namespace = "default"
    return made


@asynccontextmanager
async def operating(world: World, *controllers: Controller[Any], **options: Any) -> AsyncGenerator[Manager]:
    """Run a manager with these controllers while the block runs."""
    manager = Manager(world.operator_client(), name="gadget-operator", **options)
    manager.add(*controllers)
    async with manager.running():
        yield manager


async def world_with_gadgets() -> World:
    """Give a world that knows the kind Gadget."""
    world = World()
    await world.client.create(crd_for(Gadget))
    return world
