"""A sample operator, and one variant of it for each planted mistake; the simulation kit has to find each of them.

A Site has a ConfigMap for each page, a password from a Secret that it refers to, and an account at a billing service.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from konverge import (
    Context,
    CustomResource,
    Key,
    ObjectMeta,
    Reconciler,
    Result,
    Spec,
    Status,
    controller_for,
)
from konverge.controller import Builder
from konverge.errors import AlreadyExists, NotFound
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.manager import Operator
from konverge.objects import now
from konverge.reconcile import remove_finalizer
from konverge.triggers import to_keys
from konverge_cluster.testing import Simulation

__all__ = ["MISTAKES", "Billing", "Site", "SiteReconciler", "edit_sites", "operator_of", "samples"]


class SiteSpec(Spec):
    pages: int = 1
    secret: str = "password"


class SiteStatus(Status):
    pages: int = 0
    child: str = ""
    account: str = ""
    reconciled_at: str = ""


class Site(CustomResource[SiteSpec, SiteStatus], group="simulation.konverge.dev", version="v1"):
    """A site with pages."""


@dataclass
class Billing:
    """An external service with accounts; opening one twice has a price."""

    accounts: set[str] = field(default_factory=set)
    opened: Counter[str] = field(default_factory=Counter)

    async def open(self, uid: str) -> None:
        """Open an account; nothing changes when it is open."""
        self.accounts.add(uid)

    async def buy(self, uid: str) -> None:
        """Open an account, and pay for it each time."""
        self.accounts.add(uid)
        self.opened[uid] += 1

    async def close(self, uid: str) -> None:
        self.accounts.discard(uid)


class SiteReconciler(Reconciler[Site]):
    """Correct: every mistake is a subclass."""

    finalizer = "simulation.konverge.dev/billing"

    def __init__(self, billing: Billing) -> None:
        self.billing = billing

    async def reconcile(self, site: Site, ctx: Context) -> Result | None:
        await self.open_account(site, ctx)
        secret = await self.read_secret(site, ctx)
        await self.apply_pages(site, ctx, secret)
        await self.prune_pages(site, ctx)
        site.status.pages = site.spec.pages
        self.fill_status(site)
        await ctx.update_status(site)
        return None

    async def finalize(self, site: Site, ctx: Context) -> Result | None:
        await self.billing.close(site.uid)
        return None

    async def open_account(self, site: Site, ctx: Context) -> None:
        await self.billing.open(site.uid)

    async def read_secret(self, site: Site, ctx: Context) -> str:
        secret = await ctx.get(Secret, site.spec.secret)
        return (secret.data or {}).get("password", b"").hex() if secret is not None else ""

    def page(self, site: Site, number: int, secret: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=f"{site.name}-{number}"), data={"secret": secret})

    async def apply_pages(self, site: Site, ctx: Context, secret: str) -> None:
        for number in range(site.spec.pages):
            await ctx.apply(self.page(site, number, secret))

    async def prune_pages(self, site: Site, ctx: Context) -> None:
        await ctx.prune(ConfigMap)

    def fill_status(self, site: Site) -> None:
        """Set what else the status has."""

    def watch(self, builder: Builder[Site]) -> Builder[Site]:
        return builder.watches(Secret, to_keys(_sites_of, Secret))


def _sites_of(secret: Secret) -> list[Key]:
    return [Key(secret.namespace, name) for name in ("a", "b") if secret.name == "password"]


# The mistakes


class CreateWithoutOwner(SiteReconciler):
    async def apply_pages(self, site: Site, ctx: Context, secret: str) -> None:
        for number in range(site.spec.pages):
            page = self.page(site, number, secret)
            page.metadata.namespace = site.namespace
            try:
                await ctx.client.create(page)
            except AlreadyExists:
                await ctx.client.patch(ConfigMap, page.name, {"data": page.data}, namespace=site.namespace)

    async def prune_pages(self, site: Site, ctx: Context) -> None:
        for number in range(site.spec.pages, 9):
            await ctx.client.delete(ConfigMap, f"{site.name}-{number}", namespace=site.namespace, missing_ok=True)


class DeleteWithoutPrecondition(SiteReconciler):
    async def prune_pages(self, site: Site, ctx: Context) -> None:
        wanted = {f"{site.name}-{number}" for number in range(site.spec.pages)}
        for page in ctx.owned(ConfigMap):
            if page.name not in wanted:
                await ctx.client.delete(ConfigMap, page.name, namespace=site.namespace, missing_ok=True)


class StatusEveryTime(SiteReconciler):
    def fill_status(self, site: Site) -> None:
        site.status.reconciled_at = now().isoformat()


class StateInMemory(SiteReconciler):
    """Remembers in memory which pages it has created, and deletes only those."""

    def __init__(self, billing: Billing) -> None:
        super().__init__(billing)
        self.created: dict[str, int] = {}

    async def prune_pages(self, site: Site, ctx: Context) -> None:
        for number in range(site.spec.pages, self.created.get(site.uid, 0)):
            page = await ctx.get(ConfigMap, f"{site.name}-{number}")
            if page is not None:
                await ctx.delete(page)
        self.created[site.uid] = site.spec.pages


class RandomSuffix(SiteReconciler):
    """Writes the name of its child to the status after the child exists."""

    async def apply_pages(self, site: Site, ctx: Context, secret: str) -> None:
        name = site.status.child or f"{site.name}-{random.randrange(16**5):05x}"
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"secret": secret}))
        site.status.child = name

    async def prune_pages(self, site: Site, ctx: Context) -> None:
        """The status has the name of the only child."""


class FinalizerRemovedEarly(SiteReconciler):
    """Removes its finalizer by itself, and cleans up afterwards."""

    async def finalize(self, site: Site, ctx: Context) -> Result | None:
        await remove_finalizer(ctx.client, site, self.finalizer)
        return await super().finalize(site, ctx)


class MissedWatch(SiteReconciler):
    async def read_secret(self, site: Site, ctx: Context) -> str:
        try:
            secret = await ctx.client.get(Secret, site.spec.secret, namespace=site.namespace)
        except NotFound:
            return ""
        return (secret.data or {}).get("password", b"").hex()

    def watch(self, builder: Builder[Site]) -> Builder[Site]:
        return builder.needs(Secret, "get")


class CallNotIdempotent(SiteReconciler):
    """Opens an account, and notes that in the status afterwards."""

    async def open_account(self, site: Site, ctx: Context) -> None:
        if not site.status.account:
            await self.billing.buy(site.uid)
            site.status.account = "open"


MISTAKES: dict[type[SiteReconciler], str] = {
    CreateWithoutOwner: "left behind after everything was deleted",
    DeleteWithoutPrecondition: "another client had replaced it",
    StatusEveryTime: "writes|changed objects when it was restarted|instead of",
    StateInMemory: "should not exist",
    RandomSuffix: "should not exist|creates and deletes",
    FinalizerRemovedEarly: "external service",
    MissedWatch: "changed objects when it was restarted",
    CallNotIdempotent: "external service",
}


# The scenario


def operator_of(reconciler: type[SiteReconciler], billing: Billing) -> Operator:
    made = reconciler(billing)
    controller = made.watch(controller_for(Site).owns(ConfigMap)).build(made)
    return Operator(name="site-operator", controllers=(controller,), kinds=(Site,))


def samples() -> list[Any]:
    secret = Secret(metadata=ObjectMeta(name="password"), data={"password": b"one"})
    return [secret, Site(metadata=ObjectMeta(name="a"), spec=SiteSpec(pages=2), status=SiteStatus())]


async def edit_sites(sim: Simulation[Billing]) -> None:
    """Scale up and down, change the Secret, create and delete a second site."""
    await sim.client.patch(Site, "a", {"spec": {"pages": 3}})
    await sim.settle()
    await sim.client.patch(Secret, "password", {"stringData": {"password": "two"}})
    await sim.settle()
    await sim.client.patch(Site, "a", {"spec": {"pages": 1}})
    await sim.client.create(Site(metadata=ObjectMeta(name="b"), spec=SiteSpec(pages=1), status=SiteStatus()))
    await sim.settle()
    await sim.client.delete(Site, "b")
