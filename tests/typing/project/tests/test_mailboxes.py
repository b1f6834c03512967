"""The operator on a cluster in the process of the test."""

from __future__ import annotations

from typing import assert_type

from konverge import ObjectMeta, Operator, controller_for, crd_for
from konverge.k8s.apps.v1 import Deployment
from konverge_cluster.testing import Simulation, TestCluster, simulate
from mailboxes.api import Mailbox, MailboxSpec
from mailboxes.children import scaled
from mailboxes.operator import mailboxes
from mailboxes.reconciler import deliver, poll
from mailboxes.service import PostOffice


async def test_a_mailbox_gets_its_deployment(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(Mailbox))
    async with cluster.operator(mailboxes):
        mailbox = Mailbox(metadata=ObjectMeta(name="info"), spec=MailboxSpec(image="mail:1"))
        created = await client.create(scaled(mailbox, 2))
        await cluster.settle()
        assert (await client.get(Deployment, "info")).spec.replicas == 2
        await client.delete(created)
        await cluster.settle()


def delivering(post_office: PostOffice) -> Operator:
    controller = controller_for(Mailbox).build(deliver)
    return Operator(name="mail", controllers=(controller,), shared=(post_office.open,), runnables=(poll,))


@simulate(delivering, external=PostOffice, samples=[Mailbox.new("info", MailboxSpec(image="mail:1"))], seeds=2)
async def test_a_mailbox_is_delivered_under_faults(sim: Simulation[PostOffice]) -> None:
    assert_type(sim.external, PostOffice)
    assert sim.external.letters == ["info"]


@simulate(lambda: Operator(name="mail", controllers=(mailboxes,)), replicas=2, seeds=1)
async def test_a_simulation_without_an_external_service(sim: Simulation) -> None:
    assert_type(sim.external, None)
    assert not sim.writes
