"""An operator under its own account runs commands in containers: what it lacks is reported, too."""

from __future__ import annotations

from functools import partial

import pytest

from konverge import Client
from konverge.client import InProcessTransport
from konverge.errors import Forbidden
from konverge.manager import Operator
from konverge_cluster.operator_accounts import AccountTransport, account_user, create_account
from konverge_cluster.testing import TestCluster


async def test_a_denied_command_is_reported_as_a_missing_rule(cluster: TestCluster) -> None:
    operator, missing = Operator(name="runner", controllers=()), list[str]()
    await create_account(cluster.client(), operator)
    inner = InProcessTransport(partial(cluster.server.handle, user=account_user(operator)))
    client = Client(AccountTransport(inner, operator, missing.append))
    with pytest.raises(Forbidden):
        await client.exec("web-0", ["date"], namespace="default")
    assert ["pods" in line and "subresource='exec'" in line for line in missing] == [True]
