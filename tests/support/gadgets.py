"""An operator on an embedded server, in one process and on virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from konverge import Client, Condition, Controller, CustomResource, Manager, Meta, Spec, Status, crd_for, field
from konverge.client import ClientOptions, InProcessTransport
from konverge.reconcile import ReconcileObserver
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
    """A test kind with parts."""


class World:
    """An embedded server, a client for the test, and the requests of the operator."""

    def __init__(self, server: EmbeddedServer | None = None) -> None:
        self.server = server or EmbeddedServer(seed=1)
        self.client = Client(InProcessTransport(self.server.handle), options=ClientOptions(namespace="default"))
        self._seen = 0
        self.transport = FaultTransport(InProcessTransport(self.server.handle))

    @classmethod
    def beside(cls, other: World) -> World:
        """Return the same world with another transport to the server, for a second operator."""
        return cls(other.server)

    def operator_client(self) -> Client:
        return Client(self.transport, options=ClientOptions(namespace="default"))

    @property
    def writes(self) -> list[str]:
        """The writes of the operator since `forget_writes`, as "METHOD path", without events and access reviews."""
        requests = self.transport.script.requests()[self._seen :]
        writes = [f"{one.method} {one.path}" for one in requests if one.method != "GET"]
        return [one for one in writes if "/events" not in one and "accessreviews" not in one]

    def forget_writes(self) -> None:
        self._seen = len(self.transport.script.requests())


def gadget(name: str, **spec: Any) -> Gadget:
    obj = Gadget(spec=GadgetSpec(**spec))
    obj.metadata.name = name
    obj.metadata.namespace = "default"
    return obj


@asynccontextmanager
async def operating(
    world: World, *controllers: Controller[Any], observers: tuple[ReconcileObserver, ...] = (), **options: Any
) -> AsyncGenerator[Manager]:
    """Run a manager with these controllers while the block runs."""
    manager = Manager(world.operator_client(), name="gadget-operator", **options)
    manager.add(*controllers)
    manager.observe(*observers)
    async with manager.running():
        yield manager


async def world_with_gadgets() -> World:
    """Return a world with the CRD of Gadget."""
    world = World()
    await world.client.create(crd_for(Gadget))
    return world
