"""The reconciler of mailboxes, as a class and as functions."""

from __future__ import annotations

from typing import assert_type

from konverge import Context, Key, Reconciler, Result, TerminalError
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.manager import RunnableContext
from konverge.reconcile import BlockingContext
from mailboxes.api import Domain, Mailbox
from mailboxes.children import config_for, deployment_for
from mailboxes.service import Delivery, PostOffice


class MailboxReconciler(Reconciler[Mailbox]):
    finalizer = "mail.example.com/mailbox"

    def __init__(self) -> None:
        self.finalized: list[Key] = []

    async def reconcile(self, mailbox: Mailbox, ctx: Context) -> Result:
        if mailbox.spec.secret is not None and await ctx.get(Secret, mailbox.spec.secret) is None:
            return Result.requeue(after=30, reason="the secret does not exist")
        await ctx.apply(config_for(mailbox))
        deployment = await ctx.apply(deployment_for(mailbox))
        assert_type(deployment, Deployment)
        mailbox.status.replicas = deployment.status.ready_replicas or 0
        ctx.condition(mailbox, "Available", mailbox.status.replicas > 0, reason="Observed")
        mailbox = await ctx.update_status(mailbox)
        ctx.event("Applied", f"{len(ctx.owned(ConfigMap))} config maps")
        return Result.done()

    async def finalize(self, mailbox: Mailbox, ctx: Context) -> None:
        ctx.log.info("finalized")
        self.finalized.append(mailbox.key)


async def deliver(mailbox: Mailbox, ctx: Context) -> None:
    delivered = await ctx.shared(Delivery).deliver(mailbox.name)
    assert_type(delivered, bool)
    assert_type(ctx.shared(PostOffice), PostOffice)
    ctx.set_ready(mailbox, delivered, reason="Delivered")
    await ctx.update_status(mailbox)


async def poll(ctx: RunnableContext) -> None:
    assert_type(ctx.shared(Delivery), Delivery)


async def count_mailboxes(domain: Domain, ctx: Context) -> None:
    if not domain.spec.name:
        raise TerminalError("the domain has no name")
    for mailbox in ctx.find(Mailbox, "image", "mail:1"):
        assert_type(mailbox, Mailbox)


def log_domain(domain: Domain, ctx: BlockingContext) -> Result:
    ctx.log.info("domain", extra={"domain": domain.spec.name})
    return Result.done()
