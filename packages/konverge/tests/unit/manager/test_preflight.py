"""The check of permissions at the start: each missing rule is one line with its user and namespaces."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge import Client, Key
from konverge.client import InProcessTransport, RetryPolicy
from konverge.controller import LEASES, Permission
from konverge.manager.preflight import log_failure, missing_permissions, warn_missing_permissions
from konverge.testing import FaultTransport
from konverge.testing.faults import Fault, RecordedRequest, connection_refused, status_response
from konverge.wire import BufferedResponse, Request, Response
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


def is_review(request: RecordedRequest) -> bool:
    return request.path.endswith("/selfsubjectaccessreviews")


@pytest.mark.parametrize(
    ("fault", "level", "message", "reason"),
    [
        (status_response(404), "INFO", "permission check skipped", "the server answers no access reviews"),
        (status_response(403, reason="Forbidden", message="not you"), "WARNING", "permission check failed", "not you"),
        (connection_refused(), "WARNING", "permission check failed", "refused"),
    ],
)
async def test_a_check_that_cannot_be_made_is_one_line_after_one_request(
    caplog: pytest.LogCaptureFixture, fault: Fault, level: str, message: str, reason: str
) -> None:
    transport = transport_of(BOB)
    transport.script.add(is_review, fault)
    client = Client(transport, retry=RetryPolicy(attempts=1))
    with caplog.at_level("INFO", "konverge.manager"):
        assert await missing_permissions(client, [SECRETS, PODS, *LEASES]) is None
        assert await warn_missing_permissions(client, [SECRETS, PODS]) == []
    logged = [record for record in caplog.records if record.name == "konverge.manager"]
    assert [(record.levelname, record.getMessage()) for record in logged] == [(level, message)] * 2
    assert reason in vars(logged[0])["reason"]
    assert len(transport.script.requests(is_review)) == 2


async def test_each_review_has_all_parts_of_the_permission_and_four_are_in_flight() -> None:
    reviews, in_flight, most = list[dict[str, Any]](), 0, 0

    async def handle(request: Request) -> Response:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(1)
        in_flight -= 1
        document = json.loads(request.body)
        reviews.append(document["spec"]["resourceAttributes"])
        document["status"] = {"allowed": reviews[-1]["resource"] != "secrets"}
        return BufferedResponse(201, json.dumps(document).encode(), {"content-type": "application/json"})

    scale = Permission("apps", "deployments", "scale", "patch")
    one = Permission("", "configmaps", "", "get", "settings")
    needed = [scale, one, SECRETS, PODS, *LEASES]
    leases = [Key("system", "lease")]
    client = Client(InProcessTransport(handle))
    found = await missing_permissions(client, needed, namespaces=("shop", "bank"), leases=leases)
    assert found == {SECRETS: ("shop", "bank")}
    assert {
        "group": "apps",
        "resource": "deployments",
        "subresource": "scale",
        "verb": "patch",
        "namespace": "shop",
    } in (reviews)
    assert {"group": "", "resource": "configmaps", "verb": "get", "name": "settings", "namespace": "bank"} in reviews
    of_leases = [review for review in reviews if review["resource"] == "leases"]
    assert sorted((review["verb"], review.get("name", ""), review["namespace"]) for review in of_leases) == [
        ("create", "", "system"),
        ("get", "lease", "system"),
        ("update", "lease", "system"),
    ]
    assert most == 4


async def test_an_error_of_the_check_is_logged_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise KeyError("a mistake")

    await log_failure(broken)
    assert [record.getMessage() for record in caplog.records] == ["preflight check failed"]
    assert "a mistake" in caplog.text
