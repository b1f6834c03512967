"""Certificates: which handshakes succeed, and which do not."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from konverge.testing.certificates import Authority, Pair, write_signing_key
from konverge.testing.credentials import Credentials


def handshake(server: Pair, client: Pair | None, *, trusted: Path, clients_of: Path, host: str) -> None:
    """Do a TLS handshake in memory; raise the error of either side."""
    offering = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(clients_of))
    offering.load_cert_chain(server.cert, server.key)
    offering.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=str(trusted))
    if client:
        asking.load_cert_chain(client.cert, client.key)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        asking.wrap_bio(down, up, server_hostname=host),
        offering.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "test")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_server_and_client_of_one_authority_accept_each_other(authority: Authority, host: str) -> None:
    server = authority.sign("server", file="server", hosts=[host])
    client = authority.sign("alice", file="alice", groups=["dev"])

    handshake(server, client, trusted=authority.ca.cert, clients_of=authority.ca.cert, host=host)


def test_a_server_is_rejected_under_another_name(authority: Authority) -> None:
    server = authority.sign("server", file="server", hosts=["localhost"])
    client = authority.sign("alice", file="alice")

    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for '127.0.0.1'"):
        handshake(server, client, trusted=authority.ca.cert, clients_of=authority.ca.cert, host="127.0.0.1")


def test_a_client_of_another_authority_is_rejected(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "test")
    server = authority.sign("server", file="server", hosts=["localhost"])
    stranger = other.sign("alice", file="alice")

    with pytest.raises(ssl.SSLError):
        handshake(server, stranger, trusted=authority.ca.cert, clients_of=authority.ca.cert, host="localhost")


def test_a_client_certificate_does_not_serve(authority: Authority) -> None:
    client = authority.sign("alice", file="alice")

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, client, trusted=authority.ca.cert, clients_of=authority.ca.cert, host="localhost")


def test_a_user_of_the_api_server_is_not_let_into_etcd(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path)
    etcd = credentials.etcd_authority.ca.cert

    handshake(credentials.etcd_server, credentials.etcd_client, trusted=etcd, clients_of=etcd, host="127.0.0.1")
    with pytest.raises(ssl.SSLError):
        handshake(credentials.etcd_server, credentials.admin, trusted=etcd, clients_of=etcd, host="127.0.0.1")


def test_only_the_owner_reads_secrets(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path)
    credentials.write_admin_kubeconfig(6443)
    credentials.kubeconfig_for("system:serviceaccount:shop/web", groups=["a", "b"])
    write_signing_key(tmp_path, "signing")

    secrets = [*tmp_path.glob("*.key"), *tmp_path.glob("*.kubeconfig"), credentials.tokens_file]
    assert len(secrets) == 12
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}
