"""Tokens of service accounts: issued and authenticated.

A token from a TokenRequest expires, has audiences and may be bound to a pod, a node or a secret. A token in a Secret
(the older kind, with another issuer) has none of that, and is valid as long as the Secret contains it. Both are revoked
when the account or the bound object is deleted: authentication looks them up in the storage each time.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from konverge_cluster.api.authorization import AUTHENTICATED, UserInfo
from konverge_cluster.api.cluster import Cluster, decode, key_of
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.service_account_names import (
    service_account_groups,
    service_account_username,
    split_service_account_username,
)
from konverge_cluster.authentication.client_certificates import CREDENTIAL_ID
from konverge_cluster.authentication.secret_usage import mark_used
from konverge_cluster.authentication.web_tokens import SigningKey, unverified_claims
from konverge_cluster.storage import Entry

__all__ = ["ISSUER", "InvalidToken", "ServiceAccountTokens"]

ISSUER: Final = "https://kubernetes.default.svc"
"""The issuer of tokens, and the audience of the API server."""
_SECRET_ISSUER: Final = "kubernetes/serviceaccount"
_LEEWAY: Final = 60
_CACHED: Final = 1000
_INVALIDATED: Final = "service account token has been invalidated"
_EXTRA: Final = "authentication.kubernetes.io/"
_SECRET_CLAIMS: Final = "kubernetes.io/serviceaccount/"
_BOUND: Final = {"secret": "secrets", "pod": "pods", "node": "nodes"}


class InvalidToken(Exception):
    """A token of a service account that is not accepted; the text is that of the real server."""


class ServiceAccountTokens:
    """Issues tokens of service accounts and authenticates them.

    Promises: a token is accepted only with the signature of this server, in its time, for one of its audiences, and
    while its account and its bound object exist with the same uid.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._verified: dict[str, dict[str, Any]] = {}

    @cached_property
    def key(self) -> SigningKey:
        """The key that signs tokens; it is generated when it is first needed."""
        return SigningKey()

    def generate(
        self,
        account: Mapping[str, Any],
        *,
        audiences: Iterable[str],
        seconds: int,
        bound: Mapping[str, Mapping[str, str]] | None = None,
        warn_after: int = 0,
    ) -> str:
        """Return a new token of a service account; `bound` has references by "pod", "node" or "secret"."""
        now = int(self._cluster.clock())
        metadata = account["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": metadata["uid"]}, **(bound or {})}
        if warn_after:
            private["warnafter"] = now + warn_after
        claims = {
            "iss": ISSUER,
            "sub": service_account_username(namespace, name),
            "aud": list(audiences),
            "iat": now,
            "nbf": now,
            "exp": now + seconds,
            "jti": self._cluster.new_uid(),
            "kubernetes.io": private,
        }
        return self.key.sign(claims)

    def generate_for_secret(self, account: tuple[str, str, str], secret: str) -> str:
        """Return a new token for a Secret; `account` is its namespace, name and uid."""
        namespace, name, uid = account
        claims = {"service-account.name": name, "service-account.uid": uid, "secret.name": secret}
        claims |= {"namespace": namespace}
        private = {f"{_SECRET_CLAIMS}{key}": value for key, value in claims.items()}
        return self.key.sign({"iss": _SECRET_ISSUER, "sub": service_account_username(namespace, name), **private})

    def authenticate(self, token: str, audiences: Iterable[str] = (ISSUER,)) -> tuple[UserInfo, list[str]] | None:
        """Return the user of a token and its audiences among the given ones; None when it is not ours.

        Raises: InvalidToken.
        """
        claims = self._claims(token)
        if claims is None:
            return None
        wanted = list(audiences)
        own = claims.get("aud") or [ISSUER]
        accepted = [each for each in own if each in wanted]
        if not accepted:
            text = f"token audiences {_list(own)} is invalid for the target audiences {_list(wanted)}"
            raise InvalidToken(text)
        if claims["iss"] == _SECRET_ISSUER:
            return self._user_of_secret(token, claims), accepted
        return self._user(claims), accepted

    def _claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token that this server signed; None when it has another issuer."""
        known = self._verified.get(token)
        if known is not None:
            return known
        claims = unverified_claims(token)
        if claims is None or claims.get("iss") not in (ISSUER, _SECRET_ISSUER):
            return None
        if not self.key.is_named(token):
            raise InvalidToken("invalid signature, no keys found")
        if not self.key.is_signed(token):
            raise InvalidToken("go-jose/go-jose: error in cryptographic primitive")
        if len(self._verified) >= _CACHED:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def _user(self, claims: Mapping[str, Any]) -> UserInfo:
        now = self._cluster.clock()
        _check_times(claims, now)
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        entry = self._find("serviceaccounts", namespace, account["name"])
        if entry is None:
            raise InvalidToken(f"serviceaccounts {quote(account['name'])} not found")
        if entry.uid != account["uid"]:
            raise InvalidToken(f"service account UID ({entry.uid}) does not match claim ({account['uid']})")
        if _is_deleted_before(entry, now - _LEEWAY):
            raise InvalidToken(f"service account {namespace}/{account['name']} has been deleted")
        for kind in ("secret", "pod", *(() if "pod" in private else ("node",))):
            if kind in private:
                self._check_bound(kind, "" if kind == "node" else namespace, private[kind], now)
        name = service_account_username(namespace, account["name"])
        return UserInfo(name, _groups(namespace), account["uid"], _extra(claims, private))

    def _check_bound(self, kind: str, namespace: str, reference: Mapping[str, str], now: float) -> None:
        entry = self._find(_BOUND[kind], namespace, reference["name"])
        if entry is None:
            raise InvalidToken(_INVALIDATED)
        if entry.uid != reference["uid"]:
            text = f"does not match service account {kind} ref claim ({reference['uid']})"
            raise InvalidToken(f"{kind} UID ({entry.uid}) {text}")
        if _is_deleted_before(entry, now - _LEEWAY):
            raise InvalidToken(_INVALIDATED)

    def _user_of_secret(self, token: str, claims: Mapping[str, Any]) -> UserInfo:
        keys = ("namespace", "service-account.name", "service-account.uid", "secret.name")
        namespace, name, uid, secret_name = (str(claims.get(f"{_SECRET_CLAIMS}{key}", "")) for key in keys)
        if split_service_account_username(claims.get("sub", "")) != (namespace, name):
            raise InvalidToken("sub claim is invalid")
        secret = self._cluster.lookup("", "secrets", namespace, secret_name)
        if secret is None or "deletionTimestamp" in secret["metadata"]:
            raise InvalidToken("Token has been invalidated")
        stored = b64decode((secret.get("data") or {}).get("token", ""))
        if not hmac.compare_digest(stored, token.encode()):
            raise InvalidToken("Token does not match server's copy")
        entry = self._find("serviceaccounts", namespace, name)
        if entry is None:
            raise InvalidToken(f"serviceaccounts {quote(name)} not found")
        if "deletionTimestamp" in decode(entry.raw)["metadata"]:
            raise InvalidToken(f"ServiceAccount {namespace}/{name} has been deleted")
        if entry.uid != uid:
            raise InvalidToken(f"ServiceAccount UID ({entry.uid}) does not match claim ({uid})")
        mark_used(self._cluster, secret)
        return UserInfo(service_account_username(namespace, name), _groups(namespace), uid)

    def _find(self, plural: str, namespace: str, name: str) -> Entry | None:
        return self._cluster.storage.collection(("", plural)).get(key_of(namespace, name))


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    if now > claims["exp"] + _LEEWAY:
        raise InvalidToken("service account token has expired")
    if now < claims["nbf"] - _LEEWAY:
        raise InvalidToken("service account token is not valid yet")


def _is_deleted_before(entry: Entry, time: float) -> bool:
    """Report whether an object that waits for its deletion was to be gone before a time."""
    if b'"deletionTimestamp"' not in entry.raw:
        return False
    text = decode(entry.raw)["metadata"].get("deletionTimestamp")
    return text is not None and datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp() < time


def _groups(namespace: str) -> tuple[str, ...]:
    return (*service_account_groups(namespace), AUTHENTICATED)


def _extra(claims: Mapping[str, Any], private: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
    for kind in ("pod", "node"):
        for key in ("name", "uid"):
            if private.get(kind, {}).get(key):
                extra[f"{_EXTRA}{kind}-{key}"] = (private[kind][key],)
    return extra


def _list(values: Iterable[str]) -> str:
    return f"[{' '.join(map(quote, values))}]"
