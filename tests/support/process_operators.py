"""Operators on clusters with process nodes, under their own accounts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from konverge import Client
from konverge.client import ClientOptions, InProcessTransport
from konverge.manager import Operator
from konverge_cluster.operator_accounts import NAMESPACE, AccountTransport, account_user, create_account
from konverge_cluster.testing.operators import install_operator
from process_clusters import ProcessCluster

__all__ = ["operating_in"]


@asynccontextmanager
async def operating_in(cluster: ProcessCluster, operator: Operator) -> AsyncGenerator[None]:
    """Run an operator with the rights that are generated for it, and check at the end that it lacked none."""
    missing: list[str] = []
    await install_operator(cluster.cluster.server, cluster.client, operator)
    await create_account(cluster.client, operator)
    transport = InProcessTransport(partial(cluster.cluster.server.handle, user=account_user(operator)))
    client = Client(AccountTransport(transport, operator, missing.append), options=ClientOptions(namespace=NAMESPACE))
    async with operator.manager(client).running():
        yield
    assert missing == []
