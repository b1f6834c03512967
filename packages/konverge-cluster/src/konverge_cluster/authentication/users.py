"""Users with a token that is known to the server (a token file of the real one)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable

from konverge_cluster.api.authorization import ADMIN, AUTHENTICATED, UserInfo

__all__ = ["Users"]


class Users:
    """The tokens that a server accepts, besides those of service accounts.

    Promise: tokens are compared in constant time.
    """

    def __init__(self) -> None:
        self._tokens: list[tuple[bytes, UserInfo]] = []
        self.admin_token = self.add(ADMIN.name, [group for group in ADMIN.groups if group != AUTHENTICATED])

    def add(self, name: str, groups: Iterable[str] = (), *, token: str = "") -> str:
        """Accept a token for a user, a random one by default; return the token."""
        token = token or secrets.token_urlsafe(32)
        self._tokens.append((token.encode(), UserInfo(name, (*groups, AUTHENTICATED))))
        return token

    def remove(self, token: str) -> None:
        """Stop accepting a token; an unknown token is ignored."""
        self._tokens = [(known, user) for known, user in self._tokens if known != token.encode()]

    def of_token(self, token: str) -> UserInfo | None:
        """Return the user of a token, or None when it is unknown."""
        sent = token.encode("utf-8", "replace")
        found = None
        for known, user in self._tokens:
            if hmac.compare_digest(known, sent):
                found = user
        return found
