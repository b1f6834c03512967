"""Who may read metrics, on virtual time, with an API server that knows two tokens."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport, RetryPolicy
from konverge.errors import TransportError
from konverge.manager.metrics_access import AccessReviews, Verdict
from konverge.wire.messages import BufferedResponse, Request, Response

PROMETHEUS = "Bearer secret-of-prometheus"
PASSER_BY = "Bearer secret-of-a-passer-by"


class Reviewer:
    """An API server that knows two people, one of whom may get /metrics."""

    def __init__(self) -> None:
        self.reviews: list[tuple[str, Any]] = []
        self.may = {"prometheus"}
        self.gone = False
        self.forbids = False
        self.takes = 0.0
        self.most_at_a_time = self._at_a_time = 0

    async def handle(self, request: Request) -> Response:
        self._at_a_time += 1
        self.most_at_a_time = max(self.most_at_a_time, self._at_a_time)
        try:
            await asyncio.sleep(self.takes)
            return self._answer(request)
        finally:
            self._at_a_time -= 1

    def _answer(self, request: Request) -> Response:
        if self.gone:
            raise TransportError("connection refused")
        if self.forbids:
            return BufferedResponse(403, b'{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}', {})
        document = json.loads(request.body)
        self.reviews.append((document["kind"], document["spec"]))
        document["status"] = getattr(self, f"_{document['kind']}")(document["spec"])
        return BufferedResponse(201, json.dumps(document).encode(), {"content-type": "application/json"})

    def _TokenReview(self, spec: Any) -> Any:  # noqa: N802
        name = {"secret-of-prometheus": "prometheus", "secret-of-a-passer-by": "passer-by"}.get(spec["token"])
        user = {"username": name, "uid": "7", "groups": ["watchers"], "extra": {"from": ["here"]}}
        return {"authenticated": True, "user": user} if name else {"authenticated": False, "error": "unknown"}

    def _SubjectAccessReview(self, spec: Any) -> Any:  # noqa: N802
        attributes = spec["nonResourceAttributes"]
        return {"allowed": spec["user"] in self.may and attributes == {"path": "/metrics", "verb": "get"}}

    async def judged_by(self, **options: Any) -> AccessReviews:
        client = Client(InProcessTransport(self.handle), retry=RetryPolicy(attempts=1))
        reviews = AccessReviews(lambda: nullcontext(client), **options)
        await reviews.open()
        return reviews


@pytest.fixture
def server() -> Reviewer:
    return Reviewer()


async def test_who_has_the_right_gets_in(server: Reviewer) -> None:
    reviews = await server.judged_by()

    assert await reviews.judge(PROMETHEUS, "/metrics") == Verdict(200)
    assert [kind for kind, _ in server.reviews] == ["TokenReview", "SubjectAccessReview"]
    asked = server.reviews[1][1]
    assert asked["user"] == "prometheus"
    assert asked["groups"] == ["watchers"]
    assert asked["uid"] == "7"
    assert asked["extra"] == {"from": ["here"]}


async def test_who_has_no_right_is_refused_by_name(server: Reviewer) -> None:
    reviews = await server.judged_by()

    assert await reviews.judge(PASSER_BY, "/metrics") == Verdict(403, "passer-by may not get /metrics")
    assert (await reviews.judge(PROMETHEUS, "/debug/why/a/b/c")).status == 403


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "secret-of-prometheus"])
async def test_who_brings_no_token_is_refused_without_a_question(server: Reviewer, header: str) -> None:
    reviews = await server.judged_by()

    assert (await reviews.judge(header, "/metrics")).status == 401
    assert not server.reviews


async def test_a_token_that_nobody_knows_is_refused(server: Reviewer) -> None:
    reviews = await server.judged_by()

    assert await reviews.judge("Bearer forged", "/metrics") == Verdict(401, "the token is not valid")


async def test_a_yes_is_remembered_for_a_minute_and_a_no_for_ten_seconds(server: Reviewer) -> None:
    reviews = await server.judged_by()
    for header, lasts in ((PROMETHEUS, 60), (PASSER_BY, 10), ("Bearer forged", 10)):
        before = len(server.reviews)
        await reviews.judge(header, "/metrics")
        first = len(server.reviews)
        await asyncio.sleep(lasts - 0.1)
        await reviews.judge(header, "/metrics")
        assert len(server.reviews) == first > before
        await asyncio.sleep(0.2)
        await reviews.judge(header, "/metrics")
        assert len(server.reviews) == first + (first - before)


async def test_a_right_that_is_taken_away_is_gone_after_a_minute(server: Reviewer) -> None:
    reviews = await server.judged_by()
    await reviews.judge(PROMETHEUS, "/metrics")
    server.may.clear()
    await asyncio.sleep(61)

    assert (await reviews.judge(PROMETHEUS, "/metrics")).status == 403


async def test_nobody_new_gets_in_while_the_server_is_gone_and_that_is_not_remembered(
    server: Reviewer, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = await server.judged_by()
    server.gone = True
    for _ in range(3):
        assert (await reviews.judge(PROMETHEUS, "/metrics")).status == 503
    assert caplog.text.count("could not be reviewed") == 1
    assert "secret" not in caplog.text

    server.gone = False
    assert (await reviews.judge(PROMETHEUS, "/metrics")).status == 200


async def test_an_operator_that_may_not_ask_lets_nobody_in(server: Reviewer) -> None:
    reviews = await server.judged_by()
    server.forbids = True

    assert (await reviews.judge(PROMETHEUS, "/metrics")).status == 503


async def test_a_server_that_hangs_is_given_up(server: Reviewer) -> None:
    reviews = await server.judged_by()
    server.takes = 3600

    assert (await reviews.judge(PROMETHEUS, "/metrics")).status == 503
    assert asyncio.get_running_loop().time() <= 10


async def test_a_flood_of_tokens_costs_few_requests_at_a_time_and_little_memory(server: Reviewer) -> None:
    reviews = await server.judged_by(limit=20)
    server.takes = 1.0
    found = await asyncio.gather(*(reviews.judge(f"Bearer forged-{n}", "/metrics") for n in range(500)))

    assert {verdict.status for verdict in found} == {401, 503}
    assert server.most_at_a_time <= 4
    assert len(reviews._known) <= 20


async def test_many_at_once_with_one_token_cost_one_review_each_turn(server: Reviewer) -> None:
    reviews = await server.judged_by()
    server.takes = 1.0
    found = await asyncio.gather(*(reviews.judge(PROMETHEUS, "/metrics") for _ in range(50)))

    assert {verdict.status for verdict in found} == {200}
    assert len(server.reviews) <= 2 * 4
