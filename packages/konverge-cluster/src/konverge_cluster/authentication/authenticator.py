"""The chain of authenticators: a client certificate, then a known token, then a token of a service account.

A request with a token that is not accepted is rejected (401). One without any credentials is anonymous, which needs an
authorizer to be safe: where every request is allowed, anonymous requests are rejected too, as on the real server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.authorization import ANONYMOUS, AlwaysAllow, UserInfo
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.authentication.client_certificates import ClientCertificates
from konverge_cluster.authentication.service_account_tokens import ISSUER, InvalidToken, ServiceAccountTokens
from konverge_cluster.authentication.users import Users

__all__ = ["Authenticator"]

_INVALID: Final = "invalid bearer token"


class Authenticator:
    """Authenticates the requests to one server. `users` are the known tokens, `tokens` those of service accounts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.users = Users()
        self.tokens = ServiceAccountTokens(cluster)
        self._certificates = ClientCertificates()

    def authenticate(self, authorization: str, certificate: bytes | None) -> UserInfo:
        """Return the user of a request: its Authorization header ("" for none) and its client certificate (DER).

        Raises: StatusError 401.
        """
        if certificate:
            user = self._certificates.user(certificate)
            if user is not None:
                return user
        token = _bearer_token(authorization)
        if token:
            try:
                return self.authenticate_token(token)[0]
            except InvalidToken:
                raise _unauthorized() from None
        if isinstance(self._cluster.authorizer, AlwaysAllow):
            raise _unauthorized()
        return ANONYMOUS

    def authenticate_token(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> tuple[UserInfo, list[str]]:
        """Return the user of a token, and the audiences that it is for.

        Raises: InvalidToken.
        """
        user = self.users.of_token(token)
        if user is not None:
            return user, list(audiences)
        try:
            found = self.tokens.authenticate(token, audiences)
        except InvalidToken as error:
            raise InvalidToken(f"[{_INVALID}, {error}]") from None
        if found is None:
            raise InvalidToken(_INVALID)
        return found


def _bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header, "" when it has none."""
    parts = authorization.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _unauthorized() -> StatusError:
    return status_errors.failure(401, "Unauthorized", "Unauthorized")
