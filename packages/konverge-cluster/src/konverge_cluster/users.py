"""Authentication: the users of bearer tokens and client certificates."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from konverge_cluster.api.authorization import ADMIN, AUTHENTICATED, UserInfo

__all__ = ["Users", "certificate_user"]

_BEARER: Final = "bearer"


class Users:
    """The tokens that a server accepts.

    Promise: tokens are compared in constant time.
    """

    def __init__(self) -> None:
        self._tokens: list[tuple[str, UserInfo]] = []
        self.admin_token = self.add(ADMIN.name, [group for group in ADMIN.groups if group != AUTHENTICATED])

    def add(self, name: str, groups: Iterable[str] = (), *, token: str = "") -> str:
        """Accept a token for a user, a random one by default; return the token."""
        token = token or secrets.token_urlsafe(32)
        self._tokens.append((token, UserInfo(name, (*groups, AUTHENTICATED))))
        return token

    def remove(self, token: str) -> None:
        """Stop accepting a token; an unknown token is ignored."""
        self._tokens = [(known, user) for known, user in self._tokens if known != token]

    def of_token(self, header: str) -> UserInfo | None:
        """Return the user of an Authorization header, or None when it is not accepted."""
        scheme, _, token = header.partition(" ")
        if scheme.lower() != _BEARER:
            return None
        found = None
        for known, user in self._tokens:
            if hmac.compare_digest(known.encode(), token.strip().encode("utf-8", "replace")):
                found = user
        return found


def certificate_user(certificate: Mapping[str, Any] | None) -> UserInfo | None:
    """Return the user of a verified client certificate: the common name, with the organizations as groups."""
    names: list[tuple[str, str]] = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    name = next((value for key, value in names if key == "commonName"), "")
    if not name:
        return None
    groups = [value for key, value in names if key == "organizationName"]
    return UserInfo(name, (*groups, AUTHENTICATED))
