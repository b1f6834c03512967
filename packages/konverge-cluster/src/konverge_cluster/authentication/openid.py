"""OpenID discovery: how other programs verify tokens of service accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.responses import Response
from konverge_cluster.authentication.service_account_tokens import ISSUER, ServiceAccountTokens
from konverge_cluster.authentication.web_tokens import ALGORITHM

__all__ = ["OpenId"]

_CONFIGURATION: Final = "/.well-known/openid-configuration"
_KEYS: Final = "/openid/v1/jwks"


class OpenId:
    """The pages of OpenID discovery. `url` returns the URL of the server."""

    def __init__(self, tokens: ServiceAccountTokens, url: Callable[[], str]) -> None:
        self._tokens = tokens
        self._url = url

    @property
    def pages(self) -> dict[str, Callable[[Request], Response]]:
        """The pages by path."""
        return {_CONFIGURATION: self._configuration, _KEYS: self._keys}

    def _keys(self, request: Request) -> Response:
        return _page(request, "application/jwk-set+json", {"keys": [self._tokens.key.web_key()]})

    def _configuration(self, request: Request) -> Response:
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"{self._url()}{_KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        return _page(request, "application/json", document)


def _page(request: Request, media_type: str, document: dict[str, Any]) -> Response:
    if request.method != "GET":
        raise status_errors.method_not_allowed()
    headers = {"content-type": media_type, "cache-control": "public, max-age=3600"}
    return Response(200, msgspec.json.encode(document), headers)
