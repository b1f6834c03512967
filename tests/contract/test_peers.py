"""Third-party clients and frameworks on the embedded server: a custom resource from its creation to its deletion.

Each client runs its own script in its own environment, with warnings as errors.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from both_servers import EmbeddedServerThread
from peers import PEERS, PeersMissing, peers_python

SCRIPTS = Path(__file__).parent.parent / "support" / "peer_scripts"
REQUIRED = os.environ.get("KONVERGE_REQUIRE_CONTROL_PLANE", "0") not in ("", "0")

WARNINGS = (
    "error",
    # kr8s knows no server as new as this one; it says the same of a real one.
    "ignore:Kubernetes version:UserWarning",
    # Their own sockets at the end of the process.
    "ignore::ResourceWarning",
)
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "mode": {"type": "string", "default": "a"}}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.peers.test"},
    "spec": {
        "group": "peers.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return peers_python()
    except PeersMissing as missing:
        if REQUIRED:
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedServerThread, Path]]:
    made = EmbeddedServerThread()
    kubeconfig = tmp_path_factory.mktemp("peers") / "kubeconfig"
    made.listen(kubeconfig)
    assert made.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).status == 201
    yield made, kubeconfig
    made.close()


@pytest.mark.peers
@pytest.mark.parametrize("peer", PEERS)
def test_a_third_party_client_works_without_a_warning(
    server: tuple[EmbeddedServerThread, Path], python: Path, peer: str
) -> None:
    plane, kubeconfig = server
    namespace = f"peer-{peer.replace('_', '-')}"
    assert plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    warnings = [part for each in WARNINGS for part in ("-W", each)]

    done = subprocess.run(
        [python, *warnings, SCRIPTS / f"on_{peer}.py", kubeconfig, namespace],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(kubeconfig.parent)},
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
