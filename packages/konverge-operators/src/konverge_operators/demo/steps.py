"""The story of the demo: the life of one WebApp, told step by step, each step checked on the API server.

The operator runs in processes of its own, so that killing the one that leads is real. Nothing here knows how: the story
looks at the cluster only, as somebody with kubectl does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import click

from konverge.client import Client, rolled_out
from konverge.errors import Invalid, KonvergeError, NotFound
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Pod, Service
from konverge.objects import Unstructured
from konverge_operators.demo.replicas import Replicas

__all__ = ["Scene", "Story", "Teller"]

_PAUSE = 0.1
_NEW_TAG = "1.26"


class Teller:
    """Says each step in a line: its number, the seconds since the one before, and what holds now."""

    def __init__(self) -> None:
        self.steps = 0
        self._began = self._before = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the first."""
        return time.perf_counter() - self._began

    def say(self, text: str) -> None:
        now = time.perf_counter()
        self.steps += 1
        click.echo(f"{self.steps:2}. {now - self._before:5.1f} s  {text}")
        self._before = now

    def failed(self, what: str) -> click.ClickException:
        """Give the error of a step that does not hold."""
        return click.ClickException(f"step {self.steps + 1}: {what}")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where the story plays: a client in a namespace of its own, the sample, the operator's replicas and its lease.

    `kind` is the class of the sample, `hooked` whether webhooks are asked, `limit` how many seconds a step may take.
    """

    client: Client
    kind: type[Any]
    sample: Unstructured
    replicas: Replicas
    lease: str
    hooked: bool
    limit: float


class Story:
    """The steps, in order. One that does not hold ends the story with an error that says which."""

    def __init__(self, scene: Scene, teller: Teller) -> None:
        self._scene = scene
        self._teller = teller
        self._client = scene.client
        self._name = scene.sample.name
        self._image: str = scene.sample["spec"]["image"]
        self._count: int = scene.sample["spec"]["replicas"]

    async def tell(self) -> None:
        steps = (self._led, self._created, self._ready, self._scaled, self._healed, self._rolled)
        for step in (*steps, self._refused, self._handed_over, self._deleted):
            try:
                self._teller.say(await step())
            except KonvergeError as error:
                raise self._teller.failed(str(error)) from error

    async def _led(self) -> str:
        leader = await self._until("one of the replicas leads", self._leader)
        return f"operator: {len(self._scene.replicas.names)} replicas run, {leader} leads"

    async def _created(self) -> str:
        made = await self._client.apply(self._scene.sample, force=True)
        parts = [await self._part(kind, owner=made.uid) for kind in (Deployment, Service)]
        app = await self._client.get(self._scene.kind, self._name)
        self._check(bool(app.metadata.finalizers), "the operator's finalizer is on it")
        return f"created: {made.kind} {self._name}; it owns {' and '.join(one.kind for one in parts)}"

    async def _ready(self) -> str:
        await self._settled()
        return f"ready: {self._count} of {self._count} pods of {self._image} are available"

    async def _scaled(self) -> str:
        self._count += 2
        await self._client.scale(self._scene.kind, self._name, self._count)
        await self._settled()
        return f"scaled: {self._count} of {self._count} pods are available"

    async def _healed(self) -> str:
        before = await self._client.get(Deployment, self._name)
        await self._client.delete(before)
        await self._part(Deployment, not_uid=before.uid)
        await self._settled()
        return f"healed: Deployment deleted by hand, a new one runs {self._count} pods"

    async def _rolled(self) -> str:
        before = self._image
        self._image = f"{before.rpartition(':')[0]}:{_NEW_TAG}"
        await self._client.patch(self._scene.kind, self._name, {"spec": {"image": self._image}})
        await self._settled()
        return f"rolled: {self._image}, no pod of {before} is left"

    async def _refused(self) -> str:
        spec = {"image": "nginx:latest"} if self._scene.hooked else {"image": self._image, "replicas": 5000}
        bad = Unstructured({**self._scene.sample, "metadata": {"name": "bad-app"}, "spec": spec})
        try:
            await self._client.create(bad)
        except Invalid as refused:
            why = "; ".join(f"{cause.field}: {cause.message}" for cause in refused.causes) or str(refused)
        else:
            raise self._teller.failed("a bad manifest was not refused")
        self._check(await self._is_gone(self._scene.kind, "bad-app"), "nothing of a refused manifest is stored")
        return f"refused by the {'webhook' if self._scene.hooked else 'schema'}: {why}"

    async def _handed_over(self) -> str:
        leader = await self._until("one of the replicas leads", self._leader)
        self._scene.replicas.kill(leader)
        killed = time.perf_counter()
        # While nobody leads something is broken by hand: the next leader has to see and mend it.
        before = await self._client.get(Service, self._name)
        await self._client.delete(before)

        async def another() -> str | None:
            found = await self._leader()
            return found if found != leader else None

        successor = await self._until("another replica leads", another)
        took = time.perf_counter() - killed
        await self._part(Service, not_uid=before.uid)
        return f"handed over: {leader} killed, {successor} leads {took:.1f} s later and mends what broke meanwhile"

    async def _deleted(self) -> str:
        await self._client.delete(self._scene.kind, self._name)

        async def gone() -> bool:
            return await self._is_gone(self._scene.kind, self._name)

        async def collected() -> bool:
            lists = [await self._client.list(kind) for kind in (Deployment, ReplicaSet, Pod)]
            return not any(map(len, lists)) and await self._is_gone(Service, self._name)

        await self._until("it is gone, its finalizer done", gone)
        await self._until("its parts and pods are collected", collected)
        return "deleted: the finalizer is done, parts and pods are collected"

    # Looking at the cluster

    async def _leader(self) -> str | None:
        """Give the replica that holds the lease, if it is one that runs."""
        lease = await self._client.get(Lease, self._scene.lease)
        name = (lease.spec.holder_identity or "").rpartition("_")[0]
        return name if name in self._scene.replicas.names else None

    async def _part(self, kind: type[Any], *, owner: str = "", not_uid: str = "") -> Any:
        async def there() -> Any:
            found = await self._client.get(kind, self._name)
            owners = [one.uid for one in found.metadata.owner_references or ()]
            return found if found.uid != not_uid and (not owner or owner in owners) else None

        return await self._until(f"a {kind.__name__} {self._name} is there, owned by the WebApp", there)

    async def _settled(self) -> None:
        """Wait until the status says Ready of this very spec, and the pods are so in truth."""

        async def holds() -> bool:
            app = await self._client.get(self._scene.kind, self._name)
            told = app.status.phase == "Ready" and app.status.observed_generation == app.metadata.generation
            images = [pod.spec.containers[0].image for pod in await self._client.list(Pod)]
            so = images == [self._image] * self._count and rolled_out()(await self._client.get(Deployment, self._name))
            return so and told and app.status.available_replicas == self._count

        await self._until(f"it is Ready with {self._count} pods of {self._image}, and no others", holds)

    async def _is_gone(self, kind: type[Any], name: str) -> bool:
        try:
            await self._client.get(kind, name)
        except NotFound:
            return True
        return False

    async def _until(self, what: str, claim: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a claim gives something; what the server refuses meanwhile is a no."""
        deadline = time.monotonic() + self._scene.limit
        trouble = ""
        while time.monotonic() < deadline:
            try:
                self._scene.replicas.look_after()
                if found := await claim():
                    return found
            except KonvergeError as error:
                trouble = f" ({error})"
            except ChildProcessError as error:
                raise self._teller.failed(str(error)) from error
            await asyncio.sleep(_PAUSE)
        raise self._teller.failed(f"not so after {self._scene.limit:g} s: {what}{trouble}")

    def _check(self, holds: bool, claim: str) -> None:
        if not holds:
            raise self._teller.failed(f"not so: {claim}")
