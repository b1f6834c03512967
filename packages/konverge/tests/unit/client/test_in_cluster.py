"""The service account of a pod."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge.client.access.credentials import Identity
from konverge.client.access.in_cluster import read_service_account, why_not_in_cluster
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """As a kubelet mounts it: links to a link to a directory that is swapped whole."""
    release(tmp_path, "v1", "one")
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    return tmp_path


def release(root: Path, version: str, token: str) -> Authority:
    directory = root / version
    authority = Authority(directory, "cluster")
    authority.ca.cert.rename(directory / "ca.crt")
    (directory / "token").write_text(token)
    (directory / "namespace").write_text("shop\n")
    (root / "..new").symlink_to(version)
    (root / "..new").replace(root / "..data")
    return authority


def test_server_namespace_token_and_authority_are_read(mounted: Path) -> None:
    account = read_service_account(ENVIRON, mounted)

    assert account.server == "https://10.96.0.1:443"
    assert account.namespace == "shop"
    assert account.credentials.current() == Identity("Bearer one")
    assert account.tls.ca() == (mounted / "ca.crt").read_bytes()


def test_a_token_that_the_kubelet_replaced_is_used_after_a_rejection(mounted: Path) -> None:
    account = read_service_account(ENVIRON, mounted)
    rejected = account.credentials.current()

    release(mounted, "v2", "two")

    assert asyncio.run(account.credentials.renew(rejected)) == Identity("Bearer two")


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("fd00::1", "https://[fd00::1]:443"),
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:443"),
    ],
)
def test_an_ipv6_host_stands_in_brackets(mounted: Path, host: str, server: str) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_HOST": host}

    assert read_service_account(environ, mounted).server == server


def test_a_namespace_that_is_not_mounted_is_default(mounted: Path) -> None:
    (mounted / "namespace").unlink()

    assert read_service_account(ENVIRON, mounted).namespace == "default"


def test_the_reason_for_not_being_in_a_cluster_is_returned(mounted: Path) -> None:
    assert why_not_in_cluster(ENVIRON, mounted) is None
    missing_port = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert why_not_in_cluster(missing_port, mounted) == "not in a pod (KUBERNETES_SERVICE_PORT not set)"
    message = why_not_in_cluster(ENVIRON, mounted / "nowhere")
    assert message is not None
    assert "automountServiceAccountToken" in message


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("token", "", "token is empty, at token"),
        ("token", "a b", "the token has characters that a header cannot contain, at token"),
        ("ca.crt", "garbage", "expected PEM certificates, at ca.crt"),
        ("ca.crt", None, "No such file or directory, at ca.crt"),
    ],
)
def test_a_file_of_no_use_is_named(mounted: Path, file: str, content: str | None, expected: str) -> None:
    (mounted / file).unlink()
    if content is not None:
        (mounted / file).write_text(content)

    with pytest.raises(ConfigError) as caught:
        read_service_account(ENVIRON, mounted)

    assert str(caught.value).startswith("service account: ")
    assert expected in str(caught.value)


def test_a_port_that_is_none_is_named(mounted: Path) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:443"}

    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: expected the address"):
        read_service_account(environ, mounted)
