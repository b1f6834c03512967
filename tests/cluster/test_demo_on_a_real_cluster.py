"""The demo on a real control plane: the same steps, and the cluster is unchanged afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.testing import ControlPlane, find_binaries

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

ROOT = Path(__file__).parents[2]
LIMIT = 420.0


@contextmanager
def nodes_of(plane: ControlPlane) -> Iterator[None]:
    """Simulate nodes in another process: this test has no event loop."""
    command = [sys.executable, "-m", "konverge", "nodes", "--nodes", "2", "--kubeconfig", str(plane.kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def run_demo(plane: ControlPlane) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "konverge", "demo", "--kubeconfig", str(plane.kubeconfig)]
    environment = {**os.environ, "PATH": f"{find_binaries(('kubectl',))}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_the_demo_runs_on_a_real_cluster_and_leaves_nothing() -> None:
    with ControlPlane(controller_manager=True) as plane, nodes_of(plane):
        before = seen(plane)
        done = run_demo(plane)

        assert done.returncode == 0, done.stdout
        for step in ("refused by the webhook", "failed over", "deleted", "ended"):
            assert f" s  {step}:" in done.stdout
        assert "(kubectl wait webapp/nginx-app --for=condition=Ready)" in done.stdout
        assert seen(plane) == before

        plane.kubectl("create", "-f", str(crd_file(plane.kubeconfig.parent)))
        refused = run_demo(plane)
        assert refused.returncode == 1
        assert "the CRD webapps.example.com already exists in this cluster" in refused.stdout
        assert "webapps.example.com" in plane.kubectl("get", "crd", "-o", "name")


def seen(plane: ControlPlane) -> list[str]:
    """Return the names of what the demo creates outside of its namespace, and of namespaces."""
    kinds = "namespaces,crd,validatingwebhookconfigurations,mutatingwebhookconfigurations"
    return sorted(plane.kubectl("get", kinds, "-o", "name").split())


def crd_file(folder: Path) -> Path:
    made = subprocess.run(
        [sys.executable, "-m", "konverge", "crd", "konverge_operators.webapp"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    path = folder / "crd.yaml"
    path.write_text(made.stdout)
    return path
