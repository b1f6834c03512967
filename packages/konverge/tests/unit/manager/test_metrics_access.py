"""Access control for metrics, in virtual time, with an API server that knows two tokens."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport, RetryPolicy
from konverge.errors import TransportError
from konverge.manager.metrics_access import AccessDecision, AccessReviews
from konverge.wire.messages import BufferedResponse, Request, Response

PROMETHEUS = "Bearer secret-of-prometheus"
GUEST = "Bearer secret-of-a-guest"


class ReviewServer:
    """An API server that knows two users, one of whom may get /metrics."""

    def __init__(self) -> None:
        self.reviews: list[tuple[str, Any]] = []
        self.allowed = {"prometheus"}
        self.down = False
        self.forbids = False
        self.delay = 0.0
        self.most_in_flight = self._in_flight = 0

    async def handle(self, request: Request) -> Response:
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self.delay)
            return self._respond(request)
        finally:
            self._in_flight -= 1

    def _respond(self, request: Request) -> Response:
        if self.down:
            raise TransportError("connection refused")
        if self.forbids:
            return BufferedResponse(403, b'{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}', {})
        document = json.loads(request.body)
        self.reviews.append((document["kind"], document["spec"]))
        document["status"] = getattr(self, f"_{document['kind']}")(document["spec"])
        return BufferedResponse(201, json.dumps(document).encode(), {"content-type": "application/json"})

    def _TokenReview(self, spec: Any) -> Any:  # noqa: N802
        name = {"secret-of-prometheus": "prometheus", "secret-of-a-guest": "guest"}.get(spec["token"])
        user = {"username": name, "uid": "7", "groups": ["watchers"], "extra": {"from": ["here"]}}
        return {"authenticated": True, "user": user} if name else {"authenticated": False, "error": "unknown"}

    def _SubjectAccessReview(self, spec: Any) -> Any:  # noqa: N802
        attributes = spec["nonResourceAttributes"]
        return {"allowed": spec["user"] in self.allowed and attributes == {"path": "/metrics", "verb": "get"}}

    async def access_reviews(self, **options: Any) -> AccessReviews:
        client = Client(InProcessTransport(self.handle), retry=RetryPolicy(attempts=1))
        reviews = AccessReviews(lambda: nullcontext(client), **options)
        await reviews.open()
        return reviews


@pytest.fixture
def server() -> ReviewServer:
    return ReviewServer()


async def test_an_authorized_user_is_allowed(server: ReviewServer) -> None:
    reviews = await server.access_reviews()

    assert await reviews.authorize(PROMETHEUS, "/metrics") == AccessDecision(200)
    assert [kind for kind, _ in server.reviews] == ["TokenReview", "SubjectAccessReview"]
    spec = server.reviews[1][1]
    assert spec["user"] == "prometheus"
    assert spec["groups"] == ["watchers"]
    assert spec["uid"] == "7"
    assert spec["extra"] == {"from": ["here"]}


async def test_an_unauthorized_user_is_denied_by_name(server: ReviewServer) -> None:
    reviews = await server.access_reviews()

    assert await reviews.authorize(GUEST, "/metrics") == AccessDecision(403, "guest may not get /metrics")
    assert (await reviews.authorize(PROMETHEUS, "/debug/why/a/b/c")).status == 403


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "secret-of-prometheus"])
async def test_a_request_without_a_token_is_denied_without_a_review(server: ReviewServer, header: str) -> None:
    reviews = await server.access_reviews()

    assert await reviews.authorize(header, "/metrics") == AccessDecision(401, "a bearer token is required")
    assert not server.reviews


async def test_the_scheme_of_a_token_may_be_in_any_case_and_spaces_around_it_do_not_count(server: ReviewServer) -> None:
    reviews = await server.access_reviews()
    token = PROMETHEUS.partition(" ")[2]
    for header in (f"bearer {token}", f"BEARER   {token} "):
        assert await reviews.authorize(header, "/metrics") == AccessDecision(200)


async def test_an_unknown_token_is_denied(server: ReviewServer) -> None:
    reviews = await server.access_reviews()

    assert await reviews.authorize("Bearer forged", "/metrics") == AccessDecision(401, "the token is not valid")


async def test_an_allowed_decision_is_cached_for_a_minute_and_a_denied_one_for_ten_seconds(
    server: ReviewServer,
) -> None:
    reviews = await server.access_reviews()
    for header, ttl in ((PROMETHEUS, 60), (GUEST, 10), ("Bearer forged", 10)):
        before = len(server.reviews)
        await reviews.authorize(header, "/metrics")
        first = len(server.reviews)
        await asyncio.sleep(ttl - 0.1)
        await reviews.authorize(header, "/metrics")
        assert len(server.reviews) == first > before
        await asyncio.sleep(0.2)
        await reviews.authorize(header, "/metrics")
        assert len(server.reviews) == first + (first - before)


async def test_a_revoked_permission_ends_after_a_minute(server: ReviewServer) -> None:
    reviews = await server.access_reviews()
    await reviews.authorize(PROMETHEUS, "/metrics")
    server.allowed.clear()
    await asyncio.sleep(61)

    assert (await reviews.authorize(PROMETHEUS, "/metrics")).status == 403


async def test_requests_are_denied_while_the_server_is_down_and_that_is_not_cached(
    server: ReviewServer, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = await server.access_reviews()
    server.down = True
    for _ in range(3):
        assert (await reviews.authorize(PROMETHEUS, "/metrics")).status == 503
    assert caplog.text.count("access review failed") == 1
    assert "secret" not in caplog.text

    server.down = False
    assert (await reviews.authorize(PROMETHEUS, "/metrics")).status == 200


async def test_an_operator_that_may_not_create_reviews_denies_every_request(server: ReviewServer) -> None:
    reviews = await server.access_reviews()
    server.forbids = True

    assert (await reviews.authorize(PROMETHEUS, "/metrics")).status == 503


async def test_a_server_that_hangs_times_out(server: ReviewServer) -> None:
    reviews = await server.access_reviews()
    server.delay = 3600

    assert (await reviews.authorize(PROMETHEUS, "/metrics")).status == 503
    assert asyncio.get_running_loop().time() <= 10


async def test_a_flood_of_tokens_costs_few_requests_in_flight_and_little_memory(server: ReviewServer) -> None:
    reviews = await server.access_reviews(limit=20)
    server.delay = 1.0
    found = await asyncio.gather(*(reviews.authorize(f"Bearer forged-{n}", "/metrics") for n in range(500)))

    assert {(decision.status, decision.message) for decision in found} == {
        (401, "the token is not valid"),
        (503, "too many requests are waiting for the API server"),
    }
    assert [decision.status for decision in found].count(401) == 64
    assert server.most_in_flight == 4
    assert (await reviews.authorize("Bearer forged", "/metrics")).status == 401, "nobody waits any more"
    assert len(reviews._cache) <= 20


async def test_many_at_once_with_one_token_cost_one_review_for_each_request_in_flight(server: ReviewServer) -> None:
    reviews = await server.access_reviews()
    server.delay = 1.0
    found = await asyncio.gather(*(reviews.authorize(PROMETHEUS, "/metrics") for _ in range(50)))

    assert {decision.status for decision in found} == {200}
    assert len(server.reviews) <= 2 * 4


@pytest.mark.parametrize("user", [None, {"uid": "7"}, {"username": ""}])
async def test_a_token_without_a_user_is_denied(server: ReviewServer, user: dict[str, str] | None) -> None:
    class Nameless(ReviewServer):
        def _TokenReview(self, spec: Any) -> Any:  # noqa: N802
            return {"authenticated": True, "user": user}

    reviews = await Nameless().access_reviews()
    assert await reviews.authorize(PROMETHEUS, "/metrics") == AccessDecision(401, "the token is not valid")


async def test_reviews_carry_the_audiences_and_all_facts_about_the_user(server: ReviewServer) -> None:
    reviews = await server.access_reviews(audiences=("metrics",))
    await reviews.authorize(f"bearer  {PROMETHEUS.removeprefix('Bearer ')} ", "/metrics")
    (_, token), (_, access) = server.reviews
    assert token == {"token": "secret-of-prometheus", "audiences": ["metrics"]}
    assert access == {
        "user": "prometheus",
        "uid": "7",
        "groups": ["watchers"],
        "extra": {"from": ["here"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_an_api_server_that_fails_is_logged_once_until_it_answers(
    server: ReviewServer, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = await server.access_reviews()
    for down in (True, True, False, True):
        server.down = down
        await reviews.authorize(f"Bearer {down}-{len(server.reviews)}", "/metrics")
    logged = [vars(record) for record in caplog.records if record.name == "konverge.manager"]
    assert [record["message"] for record in logged] == ["access review failed"] * 2
    assert "connection refused" in logged[0]["reason"]
