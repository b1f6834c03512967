"""Tokens of service accounts, on virtual time: signatures, times, audiences, revocation."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from konverge_cluster.api.authorization import AUTHENTICATED
from konverge_cluster.authentication.service_account_tokens import InvalidToken
from konverge_cluster.authentication.web_tokens import SigningKey, unverified_claims
from virtual_server import Json, VirtualTimeServer

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"


async def account(plane: VirtualTimeServer, name: str = "robot") -> None:
    await plane.good("POST", ACCOUNTS, {"metadata": {"name": name}})


async def token(plane: VirtualTimeServer, name: str = "robot", **spec: Any) -> str:
    found = await plane.good("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})
    return str(found["status"]["token"])


def error_of(plane: VirtualTimeServer, sent: str, **how: Any) -> str:
    with pytest.raises(InvalidToken) as raised:
        plane.server.authenticator.tokens.authenticate(sent, **how)
    return str(raised.value)


def changed(sent: str, **claims: Any) -> str:
    """Return a token with other claims and the old signature."""
    header, _, signature = sent.split(".")
    payload = json.dumps((unverified_claims(sent) or {}) | claims).encode()
    return f"{header}.{base64.urlsafe_b64encode(payload).rstrip(b'=').decode()}.{signature}"


async def test_a_token_is_its_account() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    found = plane.server.authenticator.tokens.authenticate(await token(plane))

    assert found is not None
    user, audiences = found
    assert user.name == "system:serviceaccount:default:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED)
    assert user.uid == (await plane.good("GET", f"{ACCOUNTS}/robot"))["metadata"]["uid"]
    assert audiences == ["https://kubernetes.default.svc"]


async def test_a_token_expires_a_minute_after_its_time() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    sent = await token(plane, expirationSeconds=600)

    await asyncio.sleep(659)
    assert plane.server.authenticator.tokens.authenticate(sent) is not None
    await asyncio.sleep(2)
    assert error_of(plane, sent) == "service account token has expired"


async def test_a_token_of_the_projected_volume_of_a_pod_is_valid_for_a_year() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    pod = {
        "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]},
    }
    await plane.good("POST", PODS, pod)
    sent = await token(plane, expirationSeconds=3607, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})

    await asyncio.sleep(364 * 24 * 3600)
    assert plane.server.authenticator.tokens.authenticate(sent) is not None


async def test_changed_claims_and_other_signers_are_rejected() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    sent = await token(plane)
    verified_before = plane.server.authenticator.tokens.authenticate(sent)
    assert verified_before is not None

    assert "cryptographic" in error_of(plane, changed(sent, exp=1 << 40))
    stranger = SigningKey().sign(unverified_claims(sent) or {})
    assert error_of(plane, stranger) == "invalid signature, no keys found"
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    unsigned = f"{header}.{sent.split('.')[1]}."
    assert "cryptographic" in error_of(plane, unsigned)
    assert plane.server.authenticator.tokens.authenticate(changed(sent, iss="https://example.com")) is None
    assert plane.server.authenticator.tokens.authenticate("a.b.c") is None


async def test_a_token_for_another_audience_is_not_a_credential() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    sent = await token(plane, audiences=["vault"])

    assert error_of(plane, sent).startswith('token audiences ["vault"] is invalid for the target audiences')
    found = plane.server.authenticator.tokens.authenticate(sent, ["vault", "other"])
    assert found is not None
    assert found[1] == ["vault"]


async def test_a_bound_token_is_valid_until_a_minute_after_the_grace_period_of_its_pod() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    metadata: Json = {"name": "p", "finalizers": ["example.com/hold"]}
    spec = {"serviceAccountName": "robot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await plane.good("POST", PODS, {"metadata": metadata, "spec": spec})
    sent = await token(plane, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})

    await plane.request("DELETE", f"{PODS}/p")
    await asyncio.sleep(89)
    assert plane.server.authenticator.tokens.authenticate(sent) is not None
    await asyncio.sleep(3)
    assert error_of(plane, sent) == "service account token has been invalidated"


async def test_a_recreated_account_does_not_revive_old_tokens() -> None:
    plane = VirtualTimeServer()
    await account(plane)
    sent = await token(plane)
    await plane.good("DELETE", f"{ACCOUNTS}/robot")
    assert error_of(plane, sent) == 'serviceaccounts "robot" not found'
    await account(plane)
    assert "does not match claim" in error_of(plane, sent)
