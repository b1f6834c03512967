"""Random roles, bindings and requests: the embedded server decides each as the real one, with the same texts.

`make test` runs a part of them, `make campaigns` ten thousand.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from access_cases import AUTHORIZATION, RBAC, Json
from access_rig import Ask, EmbeddedAccess, RealAccess
from access_worlds import (
    World,
    aggregated_world,
    random_reviews,
    random_world,
    random_writes,
    writer_world,
)
from impersonation_worlds import impersonating_world, random_impersonations
from konverge.testing import ControlPlane
from konverge_cluster.api.authorization import UserInfo
from konverge_cluster.authentication.client_certificates import CREDENTIAL_ID
from konverge_cluster.authorization import RbacAuthorizer
from konverge_cluster.authorization.reviews import attributes_of
from konverge_cluster.embedded_cluster import EmbeddedCluster
from two_servers import masked

pytestmark = pytest.mark.control_plane

Pair = tuple[EmbeddedAccess, RealAccess]

REVIEWS = f"{AUTHORIZATION}/subjectaccessreviews"
_ATTEMPTS = 2000
_NOT_FOUND_LIST = re.compile(r'\[[a-z]+\.rbac\.authorization\.k8s\.io "[^"]*" not found(, [^\]]*)?\]')


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    """Both servers with their controllers; the embedded one has no nodes."""
    with ControlPlane(controller_manager=True) as plane, asyncio.Runner() as runner:
        cluster = EmbeddedCluster(nodes=0)
        runner.run(cluster.__aenter__())
        real = RealAccess(plane)
        yield EmbeddedAccess(cluster.server, runner), real
        real.close()
        runner.run(cluster.__aexit__(None, None, None))


def create(servers: Pair, world: World) -> None:
    """Create a world on both servers, and wait until the real one decides by it."""
    asks = [Ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}}) for name in world.namespaces]
    asks += [Ask("POST", path, body) for path, body in world.objects]
    for server in servers:
        for ask in asks:
            status, found = server.ask(ask)
            assert status == 201, found
    wait_until_decided(servers[1], world)


def wait_until_decided(real: RealAccess, world: World, base: str = "settled") -> None:
    """Wait for the watches of the real server: an object of each kind is written last and asked about."""
    name, namespace = world.name(base), world.namespaces[0]
    body: Json = {"metadata": {"name": name}}
    subjects = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
    for verb, kind, space in (("get", "ClusterRole", ""), ("list", "Role", f"namespaces/{namespace}/")):
        rules = [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        real.ask(Ask("POST", f"{RBAC}/{space}{kind.lower()}s", body | {"rules": rules}))
        binding = body | {"roleRef": reference, "subjects": subjects}
        real.ask(Ask("POST", f"{RBAC}/{space}{kind.lower()}bindings", binding))
        attributes = {"verb": verb, "resource": "pods", "namespace": namespace}
        ask = Ask("POST", REVIEWS, {"spec": {"user": name, "resourceAttributes": attributes}})
        assert any(real.ask(ask)[1]["status"]["allowed"] for _ in range(_ATTEMPTS)), f"{name} may not {verb} pods"


def remove(servers: Pair, world: World) -> None:
    """Remove the objects of a world, so that the next one starts on small lists."""
    for server in servers:
        server.ask_all([Ask("DELETE", f"{path}/{body['metadata']['name']}") for path, body in world.objects])
        server.ask_all([Ask("DELETE", f"/api/v1/namespaces/{name}") for name in world.namespaces])


def possible_reasons(embedded: EmbeddedAccess, spec: Json) -> set[str]:
    """Return the reason for each binding that allows a request: the real server reads bindings in random order."""
    authorizer = embedded.server.cluster.authorizer
    assert isinstance(authorizer, RbacAuthorizer)
    attributes = attributes_of(spec, UserInfo(spec["user"], tuple(spec.get("groups", ()))))
    grants = authorizer.policies.grants(attributes.user, attributes.namespace)
    allowing = [grant for grant in grants if any(rule.allows(attributes) for rule in grant.rules)]
    return {f"RBAC: allowed by {grant.source}" for grant in allowing}


def unordered(value: Any) -> Any:
    """Return an answer with the errors of several bindings sorted: the real server reads bindings in random order."""
    if isinstance(value, dict):
        return {name: unordered(each) for name, each in value.items()}
    return _NOT_FOUND_LIST.sub(_sorted_list, value) if isinstance(value, str) else value


def _sorted_list(found: re.Match[str]) -> str:
    return f"[{', '.join(sorted(found[0].strip('[]').split(', ')))}]"


def check_reviews(servers: Pair, world: World, count: int) -> int:
    """Compare decisions about random reviews; return how many were allowed."""
    embedded, real = servers
    specs = random_reviews(world, count)
    asks = [Ask("POST", REVIEWS, {"spec": spec}) for spec in specs]
    answers = zip(specs, embedded.ask_all(asks), real.ask_all(asks), strict=True)
    allowed = 0
    for spec, (our_code, ours), (code, theirs) in answers:
        assert (our_code, ours["status"]["allowed"]) == (code, theirs["status"]["allowed"]), (world.number, spec)
        if theirs["status"]["allowed"]:
            allowed += 1
            assert theirs["status"]["reason"] in possible_reasons(embedded, spec), (world.number, spec)
            assert ours["status"]["reason"] in possible_reasons(embedded, spec)
        else:
            assert unordered(ours["status"]) == unordered(theirs["status"]), (world.number, spec)
    return allowed


def check_random_worlds(servers: Pair, start: int, worlds: int, reviews: int) -> None:
    allowed = 0
    for number in range(start, start + worlds):
        world = random_world(number)
        create(servers, world)
        allowed += check_reviews(servers, world, reviews)
        remove(servers, world)
    assert worlds * reviews * 0.05 < allowed < worlds * reviews * 0.8


def rules_of(server: EmbeddedAccess | RealAccess, names: list[str]) -> list[Any]:
    return [server.ask(Ask("GET", f"{RBAC}/clusterroles/{name}"))[1]["rules"] for name in names]


def check_aggregated_worlds(servers: Pair, start: int, worlds: int, reviews: int) -> None:
    for number in range(start, start + worlds):
        world = aggregated_world(number)
        create(servers, world)
        names = [body["metadata"]["name"] for _, body in world.objects if "aggregationRule" in body]
        for _ in range(_ATTEMPTS):
            ours, theirs = (rules_of(server, names) for server in servers)
            if ours == theirs:
                break
        assert ours == theirs, number
        wait_until_decided(servers[1], world, "aggregated")
        check_reviews(servers, world, reviews)
        remove(servers, world)


def check_writes(servers: Pair, start: int, worlds: int, writes: int) -> None:
    """Compare what users may create: they escalate, bind, or do neither."""
    seen: dict[int, int] = {}
    for number in range(start, start + worlds):
        world = writer_world(number)
        create(servers, world)
        asks = [Ask("POST", path, body, user=user) for user, path, body in random_writes(world, writes)]
        answers = zip(asks, *(server.ask_all(asks) for server in servers), strict=True)
        for ask, (code, ours), (real_code, theirs) in answers:
            assert code == real_code, (ask, ours, theirs)
            assert code == 201 or unordered(masked(ours)) == unordered(masked(theirs)), ask
            seen[code] = seen.get(code, 0) + 1
        remove(servers, world)
    assert min(seen.get(code, 0) for code in (201, 403)) > worlds * writes * 0.05


def check_impersonations(servers: Pair, start: int, worlds: int, requests: int) -> None:
    """Compare who may act as whom. One after the other: a server first tries how a user was last allowed."""
    allowed = 0
    for number in range(start, start + worlds):
        world = impersonating_world(number)
        create(servers, world)
        for ask in random_impersonations(world, requests):
            (code, ours), (real_code, theirs) = (server.ask(ask) for server in servers)
            assert (code, unordered(_who(ours))) == (real_code, unordered(_who(theirs))), ask
            allowed += code < 300
        remove(servers, world)
    assert worlds * requests * 0.05 < allowed < worlds * requests * 0.8


def _who(content: Any) -> Any:
    """Return the user, the error or the list of a response.

    Without the id of the credential: a user has a certificate on the real server only.
    """
    if not isinstance(content, dict):
        return content
    if content["kind"] == "SelfSubjectReview":
        user = dict(content["status"]["userInfo"])
        extra = {key: value for key, value in user.pop("extra", {}).items() if key != CREDENTIAL_ID}
        return user, extra
    return content.get("status", content.get("items")) if content["kind"] != "Status" else content


def test_random_requests_are_decided_alike(servers: Pair) -> None:
    check_random_worlds(servers, 0, 2, 150)


def test_aggregated_roles_are_decided_alike(servers: Pair) -> None:
    check_aggregated_worlds(servers, 1000, 1, 50)


def test_random_roles_and_bindings_are_rejected_alike(servers: Pair) -> None:
    check_writes(servers, 2000, 1, 100)


def test_random_impersonations_are_decided_alike(servers: Pair) -> None:
    check_impersonations(servers, 4000, 1, 50)


@pytest.mark.campaigns
def test_eight_thousand_random_requests_are_decided_alike(servers: Pair) -> None:
    check_random_worlds(servers, 10_000, 40, 200)


@pytest.mark.campaigns
def test_two_thousand_aggregations_impersonations_escalations_and_bindings_are_decided_alike(servers: Pair) -> None:
    check_aggregated_worlds(servers, 20_000, 10, 50)
    check_writes(servers, 30_000, 18, 50)
    check_impersonations(servers, 40_000, 12, 50)
