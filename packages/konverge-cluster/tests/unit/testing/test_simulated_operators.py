"""What an operator has is there in a simulation too: shared objects, runnables, the external service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from konverge import Client, Context, CustomResource, Operator, Spec, Status, controller_for
from konverge.manager import RunnableContext, RunnableFunction
from konverge_cluster.testing import Simulation, simulate


class InvoiceSpec(Spec):
    amount: int = 1


class InvoiceStatus(Status):
    sent: bool = False


class Invoice(CustomResource[InvoiceSpec, InvoiceStatus], group="example.com", version="v1"):
    """An invoice that is sent by mail."""


@dataclass
class Mail:
    """A service that knows which invoices it sent."""

    sent: tuple[str, ...] = ()

    async def send(self, name: str) -> None:
        self.sent = tuple(sorted({*self.sent, name}))


async def start(ctx: RunnableContext) -> None:
    await ctx.shared(Mail).send("start")


@controller_for(Invoice)
async def invoices(invoice: Invoice, ctx: Context) -> None:
    await ctx.shared(Mail).send(invoice.name)
    invoice.status.sent = True
    await ctx.update_status(invoice)


def operator_with(mail: Mail, *runnables: RunnableFunction) -> Operator:
    @asynccontextmanager
    async def open_mail(client: Client) -> AsyncGenerator[Mail]:
        yield mail

    return Operator(name="invoices", controllers=(invoices,), runnables=runnables, shared=(open_mail,))


async def expect_sent(sim: Simulation[Any]) -> None:
    await sim.settle()
    assert (await sim.client.get(Invoice, "first")).status.sent


def test_a_whole_operator_keeps_its_runnables_and_shared_objects() -> None:
    mail = Mail()
    simulate(operator_with(mail, start), samples=[Invoice.new("first")], seeds=2)(expect_sent)()
    assert mail.sent == ("first", "start")


def test_the_external_service_is_shared_under_its_own_class() -> None:
    async def scenario(sim: Simulation[Mail]) -> None:
        await expect_sent(sim)
        assert sim.external.sent == ("first",)

    simulate(operator_with, samples=[Invoice.new("first")], external=Mail, seeds=4)(scenario)()


def test_an_external_service_needs_a_function_that_gets_it() -> None:
    with pytest.raises(TypeError, match="pass a function that gets the service"):
        simulate(operator_with(Mail()), external=Mail)  # type: ignore[call-overload]
