"""The operator on a cluster in the process of the test."""

from __future__ import annotations

from konverge import ObjectMeta, crd_for
from konverge.k8s.apps.v1 import Deployment
from konverge_cluster.testing import TestCluster
from mailboxes.api import Mailbox, MailboxSpec
from mailboxes.children import scaled
from mailboxes.operator import mailboxes


async def test_a_mailbox_gets_its_deployment(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(Mailbox))
    async with cluster.operator(mailboxes):
        mailbox = Mailbox(metadata=ObjectMeta(name="info"), spec=MailboxSpec(image="mail:1"))
        created = await client.create(scaled(mailbox, 2))
        await cluster.settle()
        assert (await client.get(Deployment, "info")).spec.replicas == 2
        await client.delete(created)
        await cluster.settle()
