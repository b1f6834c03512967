"""Cost of authorization: requests of a user with roles on the embedded server, with RBAC and without it, interleaved.

Run by `make bench-authorization`. Each round sends the same requests to both servers, without a socket, and measures
CPU time. The user has a role with 26 rules in one of 50 namespaces, and there are 500 more bindings of other users. The
requests are equal, so that all decisions but the first one come from the cache of decisions.
"""

from __future__ import annotations

import asyncio
import json
import time
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
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/team-7/configmaps"


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
    await _create(server, MAPS, {"metadata": {"name": "settings"}, "data": {"a": "b"}})


async def _send(server: EmbeddedServer, method: str, body: bytes) -> float:
    headers = {"content-type": "application/merge-patch+json"} if body else {}
    request = Request(method, f"{MAPS}/settings", (), headers, body=body)
    start = time.process_time()
    for _ in range(REQUESTS):
        response = await server.handle(request, ACCOUNT)
        assert response.status == 200
    return (time.process_time() - start) / REQUESTS * 1e6


def main() -> None:
    parts, verdicts = [], []
    with asyncio.Runner() as runner:
        servers = {"without RBAC": EmbeddedServer(rbac=False), "with RBAC": EmbeddedServer(rbac=True)}
        for server in servers.values():
            runner.run(_prepare(server))
        for name, method, body in (("get", "GET", b""), ("patch", "PATCH", b'{"data":{"a":"b"}}')):
            metrics = measure_rounds(
                {each: partial(_measure, runner, server, method, body) for each, server in servers.items()}
            )
            added = (metrics["with RBAC"].median / metrics["without RBAC"].median - 1) * 100
            parts.append(table(f"{name} of a ConfigMap", "us", metrics, "without RBAC"))
            verdicts.append(
                verdict(f"authorization adds less than {TARGET:.0f} % to a {name}: {added:.1f} %", added < TARGET)
            )
    save_result("authorization", f"{__doc__}\n" + "\n".join([*parts, *verdicts]) + "\n")


def _measure(runner: asyncio.Runner, server: EmbeddedServer, method: str, body: bytes) -> float:
    return runner.run(_send(server, method, body))


if __name__ == "__main__":
    main()
