"""Local images below a directory that other users cannot enter, such as a home directory of mode 0700."""

from __future__ import annotations

import os
from typing import Any

import pytest

from konverge_cluster.processes.users import NOBODY
from process_clusters import ProcessCluster, has_phase, is_ready, shared, status_of

pytestmark = pytest.mark.processes


@shared
async def test_a_hidden_directory_is_readable_for_its_containers(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"image": "hidden:1"}, restartPolicy="Never")
    await cluster.wait("p", has_phase("Succeeded"))

    user = NOBODY if os.getuid() == 0 else os.getuid()
    assert cluster.log("p").split() == [str(user), "hello"]


@pytest.mark.control_plane
@shared
async def test_grpc_probes_ask_a_server(cluster: ProcessCluster) -> None:
    """The server is etcd, which others wrote."""

    def container(**call: Any) -> dict[str, Any]:
        probe = {"grpc": {"port": 2379, **call}, "periodSeconds": 1, "timeoutSeconds": 5}
        return {"image": "etcd:3", "readinessProbe": probe, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}

    volumes = [{"name": "data", "emptyDir": {}}]
    await cluster.create("good", container(), volumes=volumes)
    await cluster.create("bad", container(service="no.such"), volumes=volumes)

    found = await cluster.wait("good", is_ready)
    await cluster.until_event("bad", 'Readiness probe failed: health rpc failed: no status of service "no.such"')

    assert status_of(found)["restartCount"] == 0
    assert not is_ready(await cluster.client.get("pods", "bad"))
