"""The chain of authenticators: which credential counts, and when a request is anonymous."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from konverge.certificates import CLIENT, Authority, Subject, sign_certificate
from konverge_cluster.api.authorization import ANONYMOUS, AUTHENTICATED, Attributes, Decision
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.authentication.authenticator import Authenticator


class DenyAll:
    def authorize(self, attributes: Attributes) -> Decision:
        return Decision(allowed=False)


def certificate(name: str, *groups: str, lifetime: timedelta = timedelta(days=1)) -> bytes:
    now = datetime.now(UTC)
    authority = Authority("ca").identity
    subject = Subject(name, groups=groups, purposes=(CLIENT,))
    signed = sign_certificate(authority, subject, now=now, until=now + lifetime)
    return signed.certificate.public_bytes(Encoding.DER)


def authenticator() -> Authenticator:
    cluster = Cluster()
    cluster.authorizer = DenyAll()
    return Authenticator(cluster)


def test_a_certificate_counts_before_a_token() -> None:
    users = authenticator()
    user = users.authenticate(f"Bearer {users.users.admin_token}", certificate("alice", "devs", "ops"))
    assert (user.name, user.groups) == ("alice", ("devs", "ops", AUTHENTICATED))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_certificate_that_has_expired_does_not_count() -> None:
    users = authenticator()
    expired = certificate("alice", lifetime=timedelta(seconds=-1))
    assert users.authenticate("", expired) == ANONYMOUS
    assert users.authenticate(f"Bearer {users.users.admin_token}", expired).name == "kubernetes-admin"


@pytest.mark.parametrize("header", ["", "Basic eDp5", "Bearer", "Bearer ", "Bearer  token"])
def test_a_request_without_a_token_is_anonymous(header: str) -> None:
    assert authenticator().authenticate(header, None) == ANONYMOUS


def test_a_wrong_token_is_rejected() -> None:
    with pytest.raises(StatusError) as raised:
        authenticator().authenticate("Bearer wrong", None)
    assert raised.value.code == 401


def test_nobody_is_anonymous_where_everything_is_allowed() -> None:
    with pytest.raises(StatusError) as raised:
        Authenticator(Cluster()).authenticate("", None)
    assert raised.value.code == 401


def test_a_removed_token_is_rejected() -> None:
    users = authenticator()
    token = users.users.add("bob", ["devs"])
    assert users.authenticate(f"bearer {token}", None).groups == ("devs", AUTHENTICATED)
    users.users.remove(token)
    with pytest.raises(StatusError):
        users.authenticate(f"bearer {token}", None)
