"""The check of permissions at the start: each missing rule is one line with its user and namespaces."""

from __future__ import annotations

import pytest

from konverge import Client, Key
from konverge.client import InProcessTransport
from konverge.controller import LEASES, Permission
from konverge.manager.preflight import warn_missing_permissions
from konverge.testing import FaultTransport
from konverge.testing.faults import status_response
from konverge_cluster import EmbeddedServer
from konverge_cluster.api.authorization import AUTHENTICATED, UserInfo

SECRETS = Permission("", "secrets", "", "get")
PODS = Permission("", "pods", "", "list")


def transport_of(user: UserInfo) -> FaultTransport:
    server = EmbeddedServer()
    return FaultTransport(InProcessTransport(lambda request: server.handle(request, user)))


BOB = UserInfo("bob", (AUTHENTICATED,))


def fields(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    assert {record.getMessage() for record in caplog.records} == {"permissions missing: add this RBAC rule"}
    return [(one.__dict__["user"], one.__dict__["namespaces"], one.__dict__["rule"]) for one in caplog.records]


async def test_a_missing_rule_is_logged_with_its_user_and_namespaces(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(transport_of(BOB))
    lease = Key("system", "lease")
    missing = await warn_missing_permissions(client, [SECRETS, *LEASES], namespaces=("shop", "bank"), leases=[lease])
    assert missing == [SECRETS, *LEASES]
    leases = "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}"
    assert fields(caplog) == [
        ("bob", "shop, bank", "{apiGroups: [''], resources: [secrets], verbs: [get]}"),
        ("bob", "system", leases),
    ]


async def test_without_namespaces_a_rule_is_needed_in_all(caplog: pytest.LogCaptureFixture) -> None:
    await warn_missing_permissions(Client(transport_of(BOB)), [PODS])
    assert fields(caplog) == [("bob", "all", "{apiGroups: [''], resources: [pods], verbs: [list]}")]


async def test_a_server_that_cannot_name_the_user_is_tolerated(caplog: pytest.LogCaptureFixture) -> None:
    transport = transport_of(BOB)
    transport.script.add(lambda request: request.path.endswith("/selfsubjectreviews"), status_response(404))
    await warn_missing_permissions(Client(transport), [PODS])
    assert [user for user, _, _ in fields(caplog)] == [""]


async def test_nothing_is_logged_and_nobody_asks_for_the_user_when_nothing_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport = transport_of(UserInfo("admin", ("system:masters",)))
    assert await warn_missing_permissions(Client(transport), [PODS, SECRETS]) == []
    assert [one.path.rpartition("/")[2] for one in transport.script.requests()] == ["selfsubjectaccessreviews"] * 2
    assert caplog.records == []
