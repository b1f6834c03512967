"""Upgrades of konverge, on the embedded control plane and on a real API server.

`tests/data/before-renaming` has objects that an operator wrote with the code of commit 9970296, with their managed
fields. The present code reconciles the same objects. No field may be left to an old field manager: server-side apply
would never remove it again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from konverge import (
    Client,
    Condition,
    Context,
    CustomResource,
    Manager,
    ObjectMeta,
    Reconciler,
    Result,
    Spec,
    Status,
    controller_for,
    crd_for,
    field,
)
from konverge.client import (
    ClientOptions,
    HttpTransport,
    InProcessTransport,
    field_equals,
    has_condition,
    is_deleted,
    load_config,
)
from konverge.errors import NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.objects import Key, Unstructured, from_wire
from konverge.telemetry import RequestRecord
from konverge.testing import ControlPlane
from konverge.wire import Transport
from konverge_cluster.embedded_server import EmbeddedServer

pytestmark = pytest.mark.real_time(limit=120)

DATA = Path(__file__).parent.parent / "data" / "before-renaming"
SHOPS = "shops.upgrade.example.com"
OPERATOR = "shop-operator"
NOT_COUNTED = ("Lease", "Event", "SelfSubjectAccessReview")

Json = dict[str, Any]
Open = Callable[[], "AbstractAsyncContextManager[Upgrade]"]


# The operator: the desired state for a Shop is the same as in tests/data/before-renaming/README.md.


class ShopSpec(Spec):
    image: str
    replicas: int = 1
    colors: list[str] = field(default_factory=list)


class ShopStatus(Status):
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Shop(CustomResource[ShopSpec, ShopStatus], group="upgrade.example.com", version="v1"):
    """A shop."""


def deployment(shop: Shop) -> Deployment:
    labels = {"app": shop.name}
    env = [{"name": "COLOR", "value": color} for color in shop.spec.colors[:1]]
    container = {"name": "app", "image": shop.spec.image, "env": env}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": shop.spec.replicas, "selector": {"matchLabels": labels}, "template": template}
    return from_wire(Deployment, {"metadata": {"name": shop.name, "labels": labels}, "spec": spec})


class ShopReconciler(Reconciler[Shop]):
    finalizer = "upgrade.example.com/shop"

    def __init__(self) -> None:
        self.reconciled = 0
        self.finalized: list[str] = []
        self.progress = asyncio.Event()

    async def reconcile(self, shop: Shop, ctx: Context) -> Result:
        await ctx.apply(deployment(shop))
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=shop.name), data=dict.fromkeys(shop.spec.colors, "1")))
        shop.status.observed_generation = shop.metadata.generation or 0
        ctx.condition(shop, "Ready", True, reason="Applied")
        await ctx.update_status(shop)
        self.reconciled += 1
        self.progress.set()
        return Result.done()

    async def finalize(self, shop: Shop, ctx: Context) -> Result:
        self.finalized.append(shop.name)
        return Result.done()


# The recorded objects on a server


def recorded(name: str, **replace: str) -> Json:
    """Return a recorded object; each keyword is a text of the recording and its replacement."""
    text = (DATA / f"{name}.json").read_text()
    for old, new in replace.items():
        text = text.replace(old.replace("_", "-"), new)
    found: Json = json.loads(text)
    return found


def managers(obj: Json) -> list[tuple[str, str, str]]:
    """Return manager, operation and subresource of each entry of the managed fields."""
    entries = obj["metadata"]["managedFields"]
    return sorted((entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries)


def owned_fields(obj: Json) -> list[tuple[str, str, str, str]]:
    """Return the same with the fields of each entry."""
    entries = [(entry, json.dumps(entry["fieldsV1"], sort_keys=True)) for entry in obj["metadata"]["managedFields"]]
    return sorted((one["manager"], one["operation"], one.get("subresource", ""), text) for one, text in entries)


class Upgrade:
    """A server with the recorded objects; `user` is the client of a person, `writes` are those of the operator."""

    def __init__(self, transport: Transport, user: Client, namespace: str) -> None:
        self._transport = transport
        self.user = user
        self.namespace = namespace
        self.writes: list[str] = []
        self.reconciler = ShopReconciler()

    async def restore(self) -> None:
        """Create the recorded objects with their managed fields."""
        shop = await self._restore(recorded("shop", before_renaming=self.namespace))
        old_uid = recorded("shop")["metadata"]["uid"]
        for name in ("deployment", "configmap"):
            text = json.dumps(recorded(name, before_renaming=self.namespace))
            await self._restore(json.loads(text.replace(old_uid, shop["metadata"]["uid"])))
        for name in ("settings", "lease"):
            await self._restore(recorded(name, before_renaming=self.namespace))

    async def _restore(self, original: Json) -> Json:
        metadata = original["metadata"]
        entries = metadata["managedFields"]
        for name in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            metadata.pop(name, None)
        seed = self.user.using(field_manager="seed")
        live = await seed.create(Unstructured(original))
        if original.get("status"):
            live = await seed.update_status(Unstructured({**live, "status": original["status"]}))
        # An update without a change of another field replaces the managed fields.
        live = await seed.update(Unstructured({**live, "metadata": {**live.metadata, "managedFields": entries}}))
        assert owned_fields(live) == owned_fields({"metadata": {"managedFields": entries}}), "restored exactly"
        return live

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[Manager]:
        """Run the operator of the present code until the block ends."""
        options = ClientOptions(namespace=self.namespace)
        client = Client(self._transport, options=options, observers=(self._observe,))
        election = LeaderElection(OPERATOR, self.namespace, identity="after")
        manager = Manager(client, name=OPERATOR, namespaces=(self.namespace,), leader_election=election)
        manager.add(controller_for(Shop).owns(Deployment).owns(ConfigMap).build(self.reconciler))
        async with manager.running():
            await self.reconciles(after=0)
            yield manager

    def _observe(self, record: RequestRecord) -> None:
        if record.verb not in ("get", "list", "watch", "discover") and record.kind not in NOT_COUNTED:
            self.writes.append(str(record))

    async def reconciles(self, *, after: int) -> None:
        """Wait until there were more reconciles than `after`."""
        async with asyncio.timeout(60):
            while self.reconciler.reconciled <= after:
                self.reconciler.progress.clear()
                await self.reconciler.progress.wait()

    async def live(self, kind: str, name: str) -> Json:
        return await self.user.get(kind, name)

    async def touch(self) -> None:
        """Change the Shop in a way that does not change the desired state, and wait for the reconcile."""
        before = self.reconciler.reconciled
        await self.user.patch(Shop, "web", {"metadata": {"labels": {"touched": str(before)}}})
        await self.reconciles(after=before)


@asynccontextmanager
async def upgrade(transport: Transport, namespace: str) -> AsyncIterator[Upgrade]:
    """Open a server with the recorded objects, and delete the custom resource at the end."""
    async with Client(transport, options=ClientOptions(namespace=namespace, field_manager="person")) as user:
        await user.create(crd_for(Shop))
        try:
            await user.wait_for("crd", SHOPS, has_condition("Established"))
            opened = Upgrade(transport, user, namespace)
            await opened.restore()
            yield opened
        finally:
            with suppress(NotFound):
                await user.patch(Shop, "web", {"metadata": {"finalizers": None}})
            await user.delete("crd", SHOPS)
            await user.wait_for("crd", SHOPS, is_deleted())


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def opened(request: pytest.FixtureRequest) -> Open:
    """Return a function that opens the embedded server, then a real one."""
    if request.param == "embedded":
        return lambda: upgrade(InProcessTransport(EmbeddedServer(seed=1).handle), "default")
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: upgrade(HttpTransport(load_config(kubeconfig=plane.kubeconfig)), namespace)


# What the present code does with them


async def test_the_same_desired_state_writes_nothing(opened: Open) -> None:
    async with opened() as it:
        before = [await it.live(kind, "web") for kind in (SHOPS, "deployments.apps", "configmaps")]
        async with it.operating():
            await it.touch()

        assert it.writes == []
        after = [await it.live(kind, "web") for kind in ("deployments.apps", "configmaps")]
        assert after == before[1:]


async def test_a_changed_desired_state_removes_fields_and_leaves_none_to_another_manager(opened: Open) -> None:
    async with opened() as it:
        async with it.operating():
            change = {"spec": {"image": "web:2", "colors": []}}
            generation = (await it.user.patch(Shop, "web", change)).metadata.generation
            await it.user.wait_for(Shop, "web", field_equals(".status.observedGeneration", generation))
            await it.touch()  # the reconcile that wrote the status is over
            it.writes.clear()
            await it.touch()

        assert it.writes == [], "idle after the change"
        shop, applied, config = [await it.live(kind, "web") for kind in (SHOPS, "deployments.apps", "configmaps")]
        container = applied["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == "web:2"
        assert "env" not in container
        assert not config.get("data")
        assert managers(applied) == managers(config) == [(OPERATOR, "Apply", "")]
        assert managers(shop) == [("person", "Update", ""), (OPERATOR, "Update", ""), (OPERATOR, "Update", "status")]


async def test_client_apply_has_the_same_default_field_manager(opened: Open) -> None:
    async with opened() as it:
        client = it.user.using(field_manager=ClientOptions().field_manager)
        same = ConfigMap(metadata=ObjectMeta(name="settings"), data={"first": "1", "second": "2"})
        before = await it.live("configmaps", "settings")
        await client.apply(same)
        assert await it.live("configmaps", "settings") == before

        await client.apply(ConfigMap(metadata=ObjectMeta(name="settings"), data={"second": "3"}))
        after = await it.live("configmaps", "settings")

        assert after["data"] == {"second": "3"}
        assert managers(after) == managers(recorded("settings")) == [("konverge", "Apply", "")]


async def test_leader_election_continues_with_the_same_lease(opened: Open) -> None:
    async with opened() as it:
        before = await it.live("leases.coordination.k8s.io", OPERATOR)
        async with it.operating():
            held = await it.live("leases.coordination.k8s.io", OPERATOR)
            leases = await it.user.list(Lease, namespace=it.namespace)

        assert [lease.key for lease in leases] == [Key(it.namespace, OPERATOR)]
        assert held["metadata"]["uid"] == before["metadata"]["uid"]
        assert held["spec"]["holderIdentity"] == "after"
        assert managers(held) == managers(before)


async def test_the_finalizer_is_not_added_twice_and_runs(opened: Open) -> None:
    async with opened() as it, it.operating():
        assert (await it.live(SHOPS, "web"))["metadata"]["finalizers"] == [ShopReconciler.finalizer]

        await it.user.delete(Shop, "web")
        await it.user.wait_for(Shop, "web", is_deleted())

        assert it.reconciler.finalized == ["web"]
