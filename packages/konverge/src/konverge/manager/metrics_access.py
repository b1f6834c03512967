"""Who may read metrics: the API server says who a token is (TokenReview) and what they may (SubjectAccessReview).

The right is that of a path: a ClusterRole with `nonResourceURLs: ["/metrics"]` and `verbs: ["get"]`. Rules:

1. Nobody gets in without a token, and nobody gets in while the API server cannot be asked.
2. A yes is remembered for a minute, a no for ten seconds: a right that is taken away is gone that soon.
3. Tokens are remembered by their hash only, and never told to anybody but the API server.
4. Whoever comes with thousands of tokens costs a few requests at a time, and not more memory than the limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Final

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.k8s.authentication.v1 import TokenReview, TokenReviewSpec, UserInfo
from konverge.k8s.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

__all__ = ["AccessReviews", "Verdict"]

_log = logging.getLogger("konverge.manager")

_AT_A_TIME: Final = 4
_WAITING: Final = 64
_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """An HTTP code and the words that go with it; 200 lets in."""

    status: int
    message: str = ""


class AccessReviews:
    """Judges requests by their token. Open it on the loop that asks it.

    Promises: see the rules above. The operator needs `create` on tokenreviews.authentication.k8s.io and on
    subjectaccessreviews.authorization.k8s.io (the ClusterRole system:auth-delegator).
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Client]],
        *,
        audiences: tuple[str, ...] = (),
        yes_for: float = 60.0,
        no_for: float = 10.0,
        limit: int = 1000,
    ) -> None:
        self._connect = connect
        self._audiences = audiences
        self._yes_for, self._no_for = yes_for, no_for
        self._limit = limit
        self._known: dict[tuple[bytes, str], tuple[float, Verdict]] = {}
        self._undo = AsyncExitStack()
        self._waiting = 0
        self._logged = ""

    async def open(self) -> None:
        """Connect to the API server."""
        client = await self._undo.enter_async_context(self._connect())
        self._client = client.using(timeout=_TIMEOUT)
        # Held across the reviews of one request, so that few of them are under way at a time.
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def close(self) -> None:
        """Close the connection."""
        await self._undo.aclose()

    async def judge(self, authorization: str, path: str) -> Verdict:
        """Say whether who sent this Authorization header may get that path."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Verdict(401, "a bearer token is needed")
        key = (hashlib.sha256(token.encode()).digest(), path)
        if (known := self._remembered(key)) is not None:
            return known
        if self._waiting >= _WAITING:
            return Verdict(503, "too many requests wait for the API server")
        self._waiting += 1
        try:
            async with self._turns:
                return self._remembered(key) or await self._ask(key, token)
        finally:
            self._waiting -= 1

    async def _ask(self, key: tuple[bytes, str], token: str) -> Verdict:
        try:
            async with asyncio.timeout(2 * _TIMEOUT):
                verdict = await self._review(token, key[1])
        except (KonvergeError, TimeoutError) as error:
            self._log_once(str(error))
            return Verdict(503, "the API server could not be asked who you are and what you may do")
        self._remember(key, verdict)
        return verdict

    async def _review(self, token: str, path: str) -> Verdict:
        spec = TokenReviewSpec(token=token, audiences=list(self._audiences))
        who = (await self._client.create(TokenReview(spec=spec))).status
        if not who.authenticated or who.user is None or not who.user.username:
            return Verdict(401, "the token is not valid")
        review = SubjectAccessReview(spec=_asking(who.user, path))
        if (await self._client.create(review)).status.allowed:
            return Verdict(200)
        return Verdict(403, f"{who.user.username} may not get {path}")

    def _remembered(self, key: tuple[bytes, str]) -> Verdict | None:
        until, verdict = self._known.get(key, (0.0, Verdict(0)))
        if asyncio.get_running_loop().time() < until:
            return verdict
        self._known.pop(key, None)
        return None

    def _remember(self, key: tuple[bytes, str], verdict: Verdict) -> None:
        while len(self._known) >= self._limit:
            del self._known[next(iter(self._known))]
        lasts = self._yes_for if verdict.status == 200 else self._no_for
        self._known[key] = (asyncio.get_running_loop().time() + lasts, verdict)
        self._logged = ""

    def _log_once(self, why: str) -> None:
        if why != self._logged:
            self._logged = why
            _log.warning("Access to metrics could not be reviewed", extra={"why": why})


def _asking(user: UserInfo, path: str) -> SubjectAccessReviewSpec:
    return SubjectAccessReviewSpec(
        user=user.username,
        groups=user.groups,
        uid=user.uid,
        extra=user.extra,
        non_resource_attributes=NonResourceAttributes(path=path, verb="get"),
    )
