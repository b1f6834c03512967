"""Cost of authorization: requests of a user with roles on the embedded server, with RBAC and without it, interleaved.

Run by `make bench-authorization`. Each round sends the same requests to both servers, without a socket, and measures
CPU time. A user has a role with 26 rules in one of 50 namespaces and sends equal requests; an operator has it in all of
them and sends requests for 300 objects; and 300 users of a group send one request each, after a role has changed. There
are 500 more bindings of other users.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from functools import partial

from measurement import measure_rounds, save_result, table, verdict

from konverge.wire.messages import Request
from konverge_cluster.api.authorization import AUTHENTICATED, UserInfo
from konverge_cluster.embedded_server import EmbeddedServer

REQUESTS = 300
TARGET = 10.0
"""Percent that authorization may add to a request."""

ACCOUNT = UserInfo(
    "system:serviceaccount:team-7:web", ("system:serviceaccounts", "system:serviceaccounts:team-7", AUTHENTICATED)
)
OPERATOR = UserInfo("operator", (AUTHENTICATED,))
USERS = [UserInfo(f"user-{index}", ("team-7", AUTHENTICATED)) for index in range(REQUESTS)]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/team-7/configmaps"
OBJECTS = [f"/api/v1/namespaces/team-{index % 50}/configmaps/map-{index}" for index in range(REQUESTS)]


async def _create(server: EmbeddedServer, path: str, body: object) -> None:
    response = await server.handle(Request("POST", path, (), {}, body=json.dumps(body).encode()))
    assert response.status == 201, await response.read()


async def _prepare(server: EmbeddedServer) -> None:
    rules = [{"apiGroups": ["apps"], "resources": [f"things{index}"], "verbs": ["get"]} for index in range(25)]
    rules.append({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch"]})
    await _create(server, f"{RBAC}/clusterroles", {"metadata": {"name": "editor"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "editor"}
    for team in range(50):
        namespace = f"team-{team}"
        await _create(server, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for user in ("web", *(f"user-{index}" for index in range(10))):
            subject = {"kind": "ServiceAccount", "name": user, "namespace": namespace}
            body = {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]}
            await _create(server, f"{RBAC}/namespaces/{namespace}/rolebindings", body)
    for kind, name in (("User", OPERATOR.name), ("Group", "team-7")):
        subject = {"kind": kind, "name": name}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        await _create(server, f"{RBAC}/clusterrolebindings", body)
    for path in (f"{MAPS}/settings", *OBJECTS):
        folder, _, name = path.rpartition("/")
        await _create(server, folder, {"metadata": {"name": name}, "data": {"a": "b"}})


async def _send(server: EmbeddedServer, requests: Sequence[tuple[Request, UserInfo]]) -> float:
    await _touch_a_role(server)
    start = time.process_time()
    for request, user in requests:
        response = await server.handle(request, user)
        assert response.status == 200
    return (time.process_time() - start) / len(requests) * 1e6


async def _touch_a_role(server: EmbeddedServer) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    body = json.dumps({"metadata": {"annotations": {"touched": str(time.monotonic_ns())}}}).encode()
    response = await server.handle(Request("PATCH", f"{RBAC}/clusterroles/editor", (), headers, body=body))
    assert response.status == 200


def _get(path: str) -> Request:
    return Request("GET", path, (), {})


def _workloads() -> list[tuple[str, list[tuple[Request, UserInfo]], bool]]:
    """Return what is measured: a name, the requests with their users, and whether the target holds for them."""
    patch = Request(
        "PATCH", f"{MAPS}/settings", (), {"content-type": "application/merge-patch+json"}, body=b'{"data":{"a":"b"}}'
    )
    return [
        ("get of a ConfigMap", [(_get(f"{MAPS}/settings"), ACCOUNT)] * REQUESTS, True),
        ("get of 300 ConfigMaps in 50 namespaces", [(_get(path), OPERATOR) for path in OBJECTS], True),
        ("patch of a ConfigMap", [(patch, ACCOUNT)] * REQUESTS, True),
        ("the first get of each of 300 users", [(_get(f"{MAPS}/settings"), user) for user in USERS], False),
    ]


def main() -> None:
    parts, verdicts = [], []
    with asyncio.Runner() as runner:
        servers = {"without RBAC": EmbeddedServer(rbac=False), "with RBAC": EmbeddedServer(rbac=True)}
        for server in servers.values():
            runner.run(_prepare(server))
        for name, requests, has_target in _workloads():
            metrics = measure_rounds(
                {each: partial(_measure, runner, server, requests) for each, server in servers.items()}
            )
            added = (metrics["with RBAC"].median / metrics["without RBAC"].median - 1) * 100
            parts.append(table(name, "us", metrics, "without RBAC"))
            if has_target:
                verdicts.append(
                    verdict(f"authorization adds less than {TARGET:.0f} % to a {name}: {added:.1f} %", added < TARGET)
                )
    save_result("authorization", f"{__doc__}\n" + "\n".join([*parts, *verdicts]) + "\n")


def _measure(runner: asyncio.Runner, server: EmbeddedServer, requests: Sequence[tuple[Request, UserInfo]]) -> float:
    return runner.run(_send(server, requests))


if __name__ == "__main__":
    main()
