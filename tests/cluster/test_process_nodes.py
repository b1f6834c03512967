"""`konverge nodes --run` for a real kube-apiserver and kube-controller-manager: lifecycle, probes, volumes, tokens.

Services, logs and exec work on an embedded cluster only, so these pods report by their status.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge import Client
from konverge.client import exists, is_deleted, load_config
from konverge.errors import ControlPlaneError
from konverge.objects import Unstructured
from konverge.testing import ControlPlane, find_binaries
from konverge.testing.binaries import NEEDED
from process_clusters import LIMIT, SLEEP, config_map, has_phase, is_ready, pod, status_of, terminated
from programs import program

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=180)]

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
IMAGES = '{images: [{image: "sh:*", command: ["/bin/sh", "-c"]}]}'


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    with ControlPlane(controller_manager=True) as running:
        yield running


async def wait(client: Client, name: str, fact: Callable[[Unstructured], bool]) -> Unstructured:
    def holds(obj: Any) -> bool:
        return obj is not None and fact(obj)

    found = await client.wait_for("pods", name, holds, timeout=LIMIT)
    assert found is not None
    return found


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncGenerator[Client]:
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        await client.wait_for("serviceaccounts", "default", exists(), timeout=LIMIT)
        await client.wait_for("configmaps", "kube-root-ca.crt", exists(), timeout=LIMIT)
        yield client


async def test_nodes_run_pods_of_a_real_control_plane(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(IMAGES)
    arguments = ("nodes", "--run", "images.yaml", "--nodes", "1", "--kubeconfig", str(plane.kubeconfig))
    with program(*arguments, folder=tmp_path, temporary=tmp_path / "scratch") as nodes:
        assert "1 local images" in nodes.read_until("processes ")
        async with connected(plane) as client:
            await check_token(client)
            await check_probes_and_volumes(client)
            await check_restarts(client)
            await client.create(pod("left", {"args": [SLEEP]}))
            await wait(client, "left", is_ready)
        nodes.end(signal.SIGINT)

    assert nodes.process.returncode == 0
    assert nodes.left_behind() == []


async def check_token(client: Client) -> None:
    script = f"test -s {TOKEN}/ca.crt && wc -l < {TOKEN}/token > /dev/termination-log; exit 3"
    container = {"args": [script]}
    await client.create(pod("token", container, automountServiceAccountToken=True, restartPolicy="Never"))

    found = await wait(client, "token", has_phase("Failed"))

    assert found["status"]["podIP"].startswith("127.")
    assert (terminated(found)["exitCode"], terminated(found)["message"]) == (3, "0\n")


async def check_probes_and_volumes(client: Client) -> None:
    await client.create(config_map("config", word="old"))
    probe = {"exec": {"command": ["grep", "new", "/config/word"]}, "periodSeconds": 1, "timeoutSeconds": 5}
    container = {
        "args": [SLEEP],
        "readinessProbe": probe,
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    await client.create(pod("web", container, volumes=[{"name": "config", "configMap": {"name": "config"}}]))
    before = await wait(client, "web", has_phase("Running"))

    await client.patch("configmaps", "config", {"data": {"word": "new"}})
    after = await wait(client, "web", is_ready)

    assert not is_ready(before)
    assert status_of(after)["restartCount"] == 0
    await client.delete(after)
    await client.wait_for("pods", "web", is_deleted(), timeout=LIMIT)


async def check_restarts(client: Client) -> None:
    init = {"name": "init", "image": "sh:1", "args": ["true"]}
    await client.create(pod("again", {"args": ["exit 7"]}, initContainers=[init]))

    found = await wait(client, "again", lambda obj: status_of(obj).get("restartCount", 0) >= 1)

    assert status_of(found)["lastState"]["terminated"]["exitCode"] == 7
    assert terminated(found, "init")["exitCode"] == 0
