"""A program with client-go on the embedded and a real cluster: with a token file, and with a client certificate.

At its start it asks for access reviews, and exits when it lacks a right.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from authentication_clusters import (
    AuthenticationCluster,
    embedded_authentication_cluster,
    real_authentication_cluster,
)
from authentication_scenarios import account, request, token_of
from certificate_scenarios import client_certificate

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("go") is None, reason="needs go"),
]

SOURCES = Path(__file__).parent.parent / "support" / "go_client"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ADMIN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}


ADMIN_LINES = ["true false", "false", "<nil>"]
"""An admin has rules, and the list is complete; an anonymous user may not list pods; the list of pods succeeds."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, built once."""
    path = tmp_path_factory.mktemp("go") / "client"
    subprocess.run(["go", "build", "-trimpath", "-o", path, "."], cwd=SOURCES, check=True)
    return path


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)], scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AuthenticationCluster]:
    """The embedded cluster, then a real one."""
    rigs = {"embedded": embedded_authentication_cluster, "real": real_authentication_cluster}
    with rigs[request.param](tmp_path_factory.mktemp("cluster")) as found:
        yield found


def start(
    program: Path, cluster: AuthenticationCluster, directory: Path, *credential: str
) -> subprocess.CompletedProcess[str]:
    """Run the client."""
    authority = directory / "ca.crt"
    authority.write_bytes(cluster.ca)
    arguments = [str(program), cluster.url, str(authority), *credential]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env={"HOME": os.devnull})


def run(program: Path, cluster: AuthenticationCluster, directory: Path, *credential: str) -> list[str]:
    """Run the client; return its lines."""
    completed = start(program, cluster, directory, *credential)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


def grant(cluster: AuthenticationCluster, username: str, subject: dict[str, str]) -> None:
    """Make somebody an admin, and wait until the server decides by it."""
    name = username.replace(":", "-")
    cluster.good("POST", BINDINGS, {"metadata": {"name": name}, "roleRef": ADMIN, "subjects": [subject]})
    spec = {"user": username, "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    cluster.until(lambda: cluster.good("POST", REVIEWS, {"spec": spec})["status"]["allowed"])


def test_a_go_client_with_a_token_file(program: Path, cluster: AuthenticationCluster, tmp_path: Path) -> None:
    token = token_of(cluster, account(cluster, "gopher"), request())
    grant(
        cluster,
        "system:serviceaccount:default:gopher",
        {"kind": "ServiceAccount", "name": "gopher", "namespace": "default"},
    )
    file = tmp_path / "token"
    file.write_text(token)

    lines = run(program, cluster, tmp_path, "token", str(file))
    groups = "system:serviceaccounts system:serviceaccounts:default system:authenticated"
    assert lines == [f"system:serviceaccount:default:gopher [{groups}]", *ADMIN_LINES]


def test_a_go_client_without_a_right_exits_at_its_start(
    program: Path, cluster: AuthenticationCluster, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(token_of(cluster, account(cluster, "novice"), request()))

    ended = start(program, cluster, tmp_path, "token", str(file))
    assert (ended.returncode, ended.stderr) == (1, "missing the right to list pods\n")


def test_a_go_client_with_a_client_certificate(program: Path, cluster: AuthenticationCluster, tmp_path: Path) -> None:
    certificate, key = client_certificate(cluster, "gopher", ["devs"])
    grant(cluster, "gopher", {"kind": "User", "name": "gopher"})
    files = [tmp_path / "client.crt", tmp_path / "client.key"]
    for file, content in zip(files, (certificate, key), strict=True):
        file.write_bytes(content)

    lines = run(program, cluster, tmp_path, "certificate", *map(str, files))
    assert lines == ["gopher [devs system:authenticated]", *ADMIN_LINES]
