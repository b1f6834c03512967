"""MyApps for tests: the seed's sample, and clusters on which the operators run together or apart."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

import konverge_operators.myapp
from konverge import Client
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Event
from konverge.manager import Operator
from konverge.objects import Unstructured, from_wire
from konverge_cluster.testing import TestCluster
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator as database_operator
from konverge_operators.myapp.api import MyApp
from konverge_operators.myapp.dependents import DATABASE
from konverge_operators.myapp.operator import new_operator
from konverge_operators.redis.operator import new_operator as redis_operator

__all__ = ["NAME", "SAMPLES", "World", "my_app", "operators", "running"]

SAMPLES = Path(konverge_operators.myapp.__file__).parent / "samples"
NAME = "shop"


def my_app(name: str = NAME, **spec: Any) -> MyApp:
    """Return an application with a database and a cache; `spec` has wire names, and None removes a field."""
    parts = {"image": "shop:1", "replicas": 1, "database": {"spec": {"version": "18"}}, "cache": {}, **spec}
    present = {key: value for key, value in parts.items() if value is not None}
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": present}
    return from_wire(MyApp, {"apiVersion": "myapp.example.com/v1", "kind": "MyApp", **document})


def sample(file: str) -> MyApp:
    return from_wire(MyApp, yaml.safe_load((SAMPLES / file).read_text()))


def operators(engine: InMemoryEngine) -> dict[str, Operator]:
    """Return new operators, by name; Databases are in memory."""
    return {"database": database_operator([engine]), "redis": redis_operator(), "myapp": new_operator()}


class World:
    """A cluster on virtual time on which the operators run."""

    def __init__(self, cluster: TestCluster, engine: InMemoryEngine, stop: Callable[[str], Any]) -> None:
        self.cluster = cluster
        self.engine = engine
        self.client: Client = cluster.client("default")
        self.stop = stop

    async def create(self, app: MyApp) -> MyApp:
        await self.client.create(app)
        return await self.app(app.name)

    async def edit(self, name: str = NAME, **spec: Any) -> MyApp:
        await self.client.patch(MyApp, name, {"spec": spec})
        return await self.app(name)

    async def app(self, name: str = NAME) -> MyApp:
        """Return an application when nothing happens any more."""
        await self.settle()
        return await self.client.get(MyApp, name)

    async def database(self, name: str = f"{NAME}-database") -> Unstructured:
        return await self.client.get(DATABASE, name)

    async def deployment(self, name: str = NAME) -> Deployment:
        return await self.client.get(Deployment, name)

    async def settle(self) -> None:
        await self.cluster.settle(quiet=45)

    async def delete(self, name: str = NAME) -> None:
        await self.client.delete(MyApp, name)
        await self.settle()

    async def events(self, kind: str = "MyApp") -> list[str]:
        found = await self.client.list(Event, namespace="default")
        return [f"{one.reason}: {one.message}" for one in found if one.involved_object.kind == kind]


@asynccontextmanager
async def running(cluster: TestCluster, *, together: bool) -> AsyncGenerator[World]:
    """Run all operators, in one manager or each in its own; each manager has its own client, cache and account."""
    engine = InMemoryEngine()
    engine.server = cluster.client()
    parts = operators(engine)
    if together:
        parts = {"all": Operator.combine("all-operators", *parts.values())}
    stacks = {name: AsyncExitStack() for name in parts}

    async def stop(name: str) -> None:
        await stacks[name].aclose()

    async with AsyncExitStack() as all_of_them:
        for name, operator in parts.items():
            await all_of_them.enter_async_context(stacks[name])
            await stacks[name].enter_async_context(cluster.operator(operator))
        yield World(cluster, engine, stop)
    assert not engine.violations


def condition(app: MyApp, type_: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    found = next(one for one in app.status.conditions if one.type == type_)
    return found.status, found.reason, found.message
