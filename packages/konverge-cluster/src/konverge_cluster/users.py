"""Who asks: bearer tokens and client certificates, and whom they speak for.

A user is a dict with `username`, `groups` and perhaps `uid` and `extra`, as admission and reviews show it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["Users", "certificate_user"]

_AUTHENTICATED: Final = "system:authenticated"
_ADMIN_GROUP: Final = "system:masters"


class Users:
    """The tokens that a server accepts.

    Promise: comparing tokens takes the same time whichever letter differs.
    """

    def __init__(self) -> None:
        self._tokens: list[tuple[str, Mapping[str, Any]]] = []
        self.admin_token = self.add("kubernetes-admin", [_ADMIN_GROUP])

    def add(self, name: str, groups: Iterable[str] = (), *, token: str = "") -> str:
        """Accept a token for a user, a random one unless one is given; return it."""
        token = token or secrets.token_urlsafe(32)
        self._tokens.append((token, {"username": name, "groups": [*groups, _AUTHENTICATED]}))
        return token

    def remove(self, token: str) -> None:
        """Accept a token no more; one that is not known is no error."""
        self._tokens = [(known, user) for known, user in self._tokens if known != token]

    def of_token(self, header: str) -> Mapping[str, Any] | None:
        """The user of an Authorization header, or None when it is not accepted."""
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = None
        for known, user in self._tokens:
            if hmac.compare_digest(known.encode(), token.strip().encode("utf-8", "replace")):
                found = user
        return found


def certificate_user(certificate: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The user of a checked client certificate: its common name, in the groups that its organizations name."""
    names: list[tuple[str, str]] = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    name = next((value for key, value in names if key == "commonName"), "")
    if not name:
        return None
    groups = [value for key, value in names if key == "organizationName"]
    return {"username": name, "groups": [*groups, _AUTHENTICATED]}
