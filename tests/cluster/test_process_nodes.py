"""Process nodes for a real kube-apiserver and kube-controller-manager: lifecycle, probes, volumes with a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from konverge import Client
from konverge.client import exists, load_config
from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, find_binaries
from konverge.testing.binaries import NEEDED
from konverge_cluster.nodes import SimulatedNodes
from konverge_cluster.processes import Processes
from process_clusters import LIMIT, SHELL, is_ready, pod

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=180)]

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    with ControlPlane(controller_manager=True) as running:
        yield running


async def test_a_pod_runs_on_a_real_control_plane_and_has_its_token(plane: ControlPlane) -> None:
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        nodes = SimulatedNodes(client, nodes=1)
        runtime = Processes([SHELL])
        nodes.use_runtime(runtime)
        async with nodes.running():
            await client.wait_for("serviceaccounts", "default", exists(), timeout=LIMIT)
            await client.wait_for("configmaps", "kube-root-ca.crt", exists(), timeout=LIMIT)
            script = f"cat {TOKEN}/namespace; while :; do sleep 0.1; done"
            probe = {"exec": {"command": ["test", "-s", f"{TOKEN}/token"]}, "periodSeconds": 1}
            container = {"args": [script], "readinessProbe": probe}
            await client.create(pod("p", container, automountServiceAccountToken=True))

            found = await client.wait_for("pods", "p", _ready, timeout=LIMIT)

            assert found is not None
            assert found["status"]["podIP"].startswith("127.")
            running = runtime.pod(found.key)
            assert running is not None
            code, output = await running.containers["c"].execute(["cat", f"{TOKEN}/namespace"])
            assert (code, output) == (0, "default")


def _ready(obj: Any) -> bool:
    return obj is not None and is_ready(obj)
