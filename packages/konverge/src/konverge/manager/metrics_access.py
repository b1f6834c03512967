"""Access control for /metrics: TokenReview authenticates the token, SubjectAccessReview authorizes the user.

The permission is for a path: a ClusterRole with `nonResourceURLs: ["/metrics"]` and `verbs: ["get"]`. Rules:

1. Requests without a token are rejected, and so are all requests while the API server does not answer reviews.
2. A positive decision is cached for a minute, a negative one for ten seconds: a revoked permission ends that soon.
3. Tokens are cached by their hash only, and sent only to the API server.
4. A client with thousands of tokens causes a few requests at a time, and no more memory than the limit.
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

__all__ = ["AccessDecision", "AccessReviews"]

_log = logging.getLogger("konverge.manager")

_MAX_IN_FLIGHT: Final = 4
_MAX_WAITING: Final = 64
_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """An HTTP status and a message; status 200 allows the request."""

    status: int
    message: str = ""


class AccessReviews:
    """Authorizes requests by their token. Open it on the loop that uses it.

    Promises: see the rules above. The operator needs `create` on tokenreviews.authentication.k8s.io and on
    subjectaccessreviews.authorization.k8s.io (the ClusterRole system:auth-delegator).
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Client]],
        *,
        audiences: tuple[str, ...] = (),
        allow_ttl: float = 60.0,
        deny_ttl: float = 10.0,
        limit: int = 1000,
    ) -> None:
        self._connect = connect
        self._audiences = audiences
        self._allow_ttl, self._deny_ttl = allow_ttl, deny_ttl
        self._limit = limit
        self._cache: dict[tuple[bytes, str], tuple[float, AccessDecision]] = {}
        self._exit_stack = AsyncExitStack()
        self._waiting = 0
        self._last_error = ""

    async def open(self) -> None:
        """Connect to the API server."""
        client = await self._exit_stack.enter_async_context(self._connect())
        self._client = client.using(timeout=_TIMEOUT)
        # Held across the reviews of one request, to limit the reviews in flight.
        self._semaphore = asyncio.Semaphore(_MAX_IN_FLIGHT)

    async def close(self) -> None:
        """Close the connection."""
        await self._exit_stack.aclose()

    async def authorize(self, authorization: str, path: str) -> AccessDecision:
        """Decide whether the sender of this Authorization header may get that path."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return AccessDecision(401, "a bearer token is required")
        key = (hashlib.sha256(token.encode()).digest(), path)
        if (cached := self._cached(key)) is not None:
            return cached
        if self._waiting >= _MAX_WAITING:
            return AccessDecision(503, "too many requests are waiting for the API server")
        self._waiting += 1
        try:
            async with self._semaphore:
                return self._cached(key) or await self._decide(key, token)
        finally:
            self._waiting -= 1

    async def _decide(self, key: tuple[bytes, str], token: str) -> AccessDecision:
        try:
            async with asyncio.timeout(2 * _TIMEOUT):
                decision = await self._review(token, key[1])
        except (KonvergeError, TimeoutError) as error:
            self._log_once(str(error))
            return AccessDecision(503, "the API server did not answer the access review")
        self._add(key, decision)
        return decision

    async def _review(self, token: str, path: str) -> AccessDecision:
        spec = TokenReviewSpec(token=token, audiences=list(self._audiences))
        status = (await self._client.create(TokenReview(spec=spec))).status
        if not status.authenticated or status.user is None or not status.user.username:
            return AccessDecision(401, "the token is not valid")
        review = SubjectAccessReview(spec=_review_spec(status.user, path))
        if (await self._client.create(review)).status.allowed:
            return AccessDecision(200)
        return AccessDecision(403, f"{status.user.username} may not get {path}")

    def _cached(self, key: tuple[bytes, str]) -> AccessDecision | None:
        expires, decision = self._cache.get(key, (0.0, AccessDecision(0)))
        if asyncio.get_running_loop().time() < expires:
            return decision
        self._cache.pop(key, None)
        return None

    def _add(self, key: tuple[bytes, str], decision: AccessDecision) -> None:
        while len(self._cache) >= self._limit:
            del self._cache[next(iter(self._cache))]
        ttl = self._allow_ttl if decision.status == 200 else self._deny_ttl
        self._cache[key] = (asyncio.get_running_loop().time() + ttl, decision)
        self._last_error = ""

    def _log_once(self, reason: str) -> None:
        if reason != self._last_error:
            self._last_error = reason
            _log.warning("access review failed", extra={"reason": reason})


def _review_spec(user: UserInfo, path: str) -> SubjectAccessReviewSpec:
    return SubjectAccessReviewSpec(
        user=user.username,
        groups=user.groups,
        uid=user.uid,
        extra=user.extra,
        non_resource_attributes=NonResourceAttributes(path=path, verb="get"),
    )
