"""An owner that is deleted and created again, and an operator whose lists and watches are older than that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from gadgets import Gadget, gadget
from konverge import Client, Context, Key, Manager, ObjectMeta, Reconciler, controller_for
from konverge.client import ClientOptions
from konverge.errors import NotFound
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.wire.messages import Transport
from stale_reads import StaleReads

__all__ = ["Children", "GadgetReconciler", "Propagation", "StaleScenario", "stale_at_the_start", "stale_while_running"]

Propagation = Literal["Background", "Orphan"]

Children = dict[tuple[str, str], tuple[str, str]]
"""The uid of each child and of its owner, by kind and name."""

POLL = 0.25


class GadgetReconciler(Reconciler[Gadget]):
    """ConfigMaps and a Deployment. `text` replaces the text of the spec: a change that needs no event."""

    def __init__(self, *, recreate: bool, text: str = "") -> None:
        self.recreate = recreate
        self.text = text

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        text = self.text or obj.spec.text
        for number in range(obj.spec.size):
            await ctx.apply(
                ConfigMap(metadata=ObjectMeta(name=f"part-{number}"), data={"text": text}), recreate=self.recreate
            )
        await ctx.apply(web(text if self.recreate else "web", text), recreate=self.recreate)
        await ctx.prune(ConfigMap)
        obj.status.parts = obj.spec.size
        await ctx.update_status(obj)


def web(selected: str, text: str) -> Deployment:
    """Return a Deployment without pods; its selector cannot be changed."""
    labels = {"app": selected}
    pod = PodSpec(containers=[Container(name="web", image=f"web:{text}")])
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=0,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


@dataclass
class StaleScenario:
    """One namespace of a server with garbage collection. `connect` opens a transport to it.

    `slack` is added to what a state may take: on real time other programs use the processor too.
    """

    connect: Callable[[], Transport]
    namespace: str = "default"
    recreate: bool = False
    slack: float = 0.0
    stale: StaleReads = field(init=False)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.stale = StaleReads(self.connect())
        self.client = Client(self.connect(), options=ClientOptions(namespace=self.namespace))

    async def close(self) -> None:
        await self.stale.close()
        await self.client.close()

    @asynccontextmanager
    async def operator(
        self, transport: Transport | None = None, *, text: str = "", every: float = 3600
    ) -> AsyncIterator[tuple[Manager, GadgetReconciler]]:
        """Run the operator while the block runs; without a transport on a live one."""
        reconciler = GadgetReconciler(recreate=self.recreate, text=text)
        own = transport or self.connect()
        client = Client(own, options=ClientOptions(namespace=self.namespace))
        manager = Manager(client, name="gadget-operator", namespaces=(self.namespace,))
        keys = [Key(self.namespace, "a")]
        builder = controller_for(Gadget).owns(ConfigMap).owns(Deployment).every(every, lambda: keys)
        manager.add(builder.build(reconciler))
        try:
            async with manager.running():
                yield manager, reconciler
        finally:
            if transport is None:
                await own.close()

    async def take_snapshot(self) -> None:
        """Take the snapshot that the stale server will serve."""
        prefix = f"namespaces/{self.namespace}"
        await self.stale.take_snapshot(
            f"/apis/test.konverge.dev/v1/{prefix}/gadgets",
            f"/api/v1/{prefix}/configmaps",
            f"/apis/apps/v1/{prefix}/deployments",
        )

    async def create_owner(self, size: int, text: str) -> Gadget:
        new = gadget("a", size=size, text=text)
        new.metadata.namespace = self.namespace
        return await self.client.create(new)

    async def edit_owner(self, size: int, text: str) -> None:
        found = await self.client.get(Gadget, "a")
        found.spec.size, found.spec.text = size, text
        await self.client.update(found)

    async def replace_owner(self, propagation: Propagation, *, size: int, text: str) -> Children:
        """Delete the owner, create it again, and run a healthy operator; return the children of the new one."""
        await self.client.delete(Gadget, "a", propagation=propagation)
        await self.until(self._owner_is_gone)
        if propagation == "Background":
            await self.until(self._children_are_gone)
        await self.create_owner(size, text)
        async with self.operator():
            await self.until(lambda: self.has_converged(size, text))
        return await self.children()

    async def _owner_is_gone(self) -> bool:
        try:
            await self.client.get(Gadget, "a")
        except NotFound:
            return True
        return False

    async def _children_are_gone(self) -> bool:
        return not await self.children()

    async def has_converged(self, size: int, text: str) -> bool:
        """Report whether all children of the owner are as its spec has them, and no others exist."""
        owner = await self.client.get(Gadget, "a")
        children = await self.children()
        names = {("ConfigMap", f"part-{number}") for number in range(size)} | {("Deployment", "web")}
        if set(children) != names or owner.status.parts != size:
            return False
        maps = await self.client.list(ConfigMap, namespace=self.namespace)
        return all(one.data == {"text": text} for one in maps if one.name.startswith("part-")) and all(
            found == owner.uid for _, found in children.values()
        )

    async def children(self) -> Children:
        found: list[Any] = [
            *await self.client.list(ConfigMap, namespace=self.namespace),
            *await self.client.list(Deployment, namespace=self.namespace),
        ]
        return {
            (one.kind, one.name): (one.uid, ",".join(owner.uid for owner in one.metadata.owner_references))
            for one in found
            if one.name.startswith(("part-", "web"))
        }

    async def check_untouched(self, expected: Children, seconds: float) -> None:
        """Check for some time that no child is deleted, replaced or gets another owner."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            found = await self.children()
            assert {name: found.get(name) for name in expected} == expected
            await asyncio.sleep(POLL)

    async def until(self, condition: Callable[[], Any], *, timeout: float = 60) -> None:
        async with asyncio.timeout(timeout + self.slack):
            while not await condition():  # noqa: ASYNC110 - a server is polled
                await asyncio.sleep(POLL)


async def stale_at_the_start(
    it: StaleScenario, propagation: Propagation, *, known: bool, seconds: float, afterwards: float
) -> None:
    """T39: the operator starts with a cache that is older than the owner; the children may be in it or not."""
    await it.create_owner(2, "one")
    if known:
        async with it.operator():
            await it.until(lambda: it.has_converged(2, "one"))
    await it.edit_owner(1, "edited")  # not reconciled: the stale operator will do it
    await it.take_snapshot()
    children = await it.replace_owner(propagation, size=3, text="two")

    it.stale.start()
    async with it.operator(it.stale):
        await it.check_untouched(children, seconds)
        it.stale.stop()
        await it.check_untouched(children, 5)
        await it.edit_owner(3, "three")
        await it.until(lambda: it.has_converged(3, "three"), timeout=30)
    await asyncio.sleep(afterwards)
    assert await it.has_converged(3, "three")


async def stale_while_running(
    it: StaleScenario, propagation: Propagation, *, seconds: float, afterwards: float
) -> None:
    """T40: the cache of a running operator becomes older than the owner. Readiness reports it."""
    await it.create_owner(2, "one")
    async with it.operator(it.stale, every=5) as (manager, reconciler):
        await it.until(lambda: it.has_converged(2, "one"))
        await it.take_snapshot()
        it.stale.start()
        await asyncio.sleep(5)  # until the open watches have ended
        children = await it.replace_owner(propagation, size=3, text="two")
        reconciler.text = "edited"

        await it.check_untouched(children, seconds)
        assert f"Gadget in {it.namespace}: the watch delivers nothing" in readiness(manager)
        reconciler.text = ""
        it.stale.stop()
        await it.until(lambda: it.has_converged(3, "two"), timeout=30)
        await it.until(lambda: is_ready(manager))
    await it.check_untouched(children, afterwards)


async def is_ready(manager: Manager) -> bool:
    return readiness(manager) == "ok"


def readiness(manager: Manager) -> str:
    assert manager._running is not None
    return manager._running.monitoring.health.ready().text()
