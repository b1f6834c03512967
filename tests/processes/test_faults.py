"""Faults on purpose: each does what it is named after, and can be undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from konverge.cli import main
from konverge.objects import Key
from konverge_cluster.processes.fault_requests import FAULTS
from process_clusters import (
    ONE_MODE,
    ProcessCluster,
    alone,
    has_phase,
    is_ready,
    limited,
    python_container,
    shared,
    status_of,
)

pytestmark = pytest.mark.processes

COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"

# Prints a line for each answer of a server, with a new connection for each.
ASK = """
import os, socket, ssl, time
host, port, tls = os.environ["SERVER_HOST"], int(os.environ["SERVER_PORT"]), os.environ["TLS"] == "yes"
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
count = 0
while True:
    try:
        with socket.create_connection((host, port), timeout=0.5) as plain:
            if tls:
                with context.wrap_socket(plain):
                    answered = True
            else:
                plain.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
                answered = bool(plain.recv(1))
        count += answered
        print("answer", count, flush=True)
    except OSError as error:
        print("timeout" if isinstance(error, TimeoutError) else "error", error, flush=True)
    time.sleep(0.05)
"""
WEB = """
import http.server, os
http.server.ThreadingHTTPServer((os.environ["POD_IP"], 8080), http.server.SimpleHTTPRequestHandler).serve_forever()
"""

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def until_more(cluster: ProcessCluster, name: str, word: str) -> None:
    """Wait for two more lines that start with a word: the first may be older than the call."""
    before = len(lines(cluster, name, word))
    await cluster.until(lambda: len(lines(cluster, name, word)) >= before + 2)


def lines(cluster: ProcessCluster, name: str, word: str) -> list[str]:
    return [line for line in cluster.log(name).splitlines() if line.startswith(word)]


def key(cluster: ProcessCluster, name: str) -> Key:
    return Key(cluster.namespace, name)


@shared
async def test_a_killed_container_restarts(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [COUNT]})
    await cluster.wait("p", is_ready)

    await cluster.cluster.faults.kill(key(cluster, "p"))

    pod = await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 1 and is_ready(pod))
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 137
    with pytest.raises(ValueError, match=r"has no container 'other' \(there are: c\)"):
        await cluster.cluster.faults.kill(key(cluster, "p"), "other")
    with pytest.raises(ValueError, match="does not run as processes"):
        await cluster.cluster.faults.kill(key(cluster, "missing"))


@shared
async def test_a_frozen_container_stops_until_it_is_resumed(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [COUNT]})
    await cluster.until_log("p", "5")

    await cluster.cluster.faults.freeze(key(cluster, "p"))
    pid = cluster.process_pod("p").containers["c"].pid
    await cluster.until(lambda: process_state(pid) == "T")
    before = cluster.log("p")
    await asyncio.sleep(0.3)
    assert cluster.log("p") == before
    await cluster.cluster.faults.resume(key(cluster, "p"))

    await cluster.until(lambda: len(cluster.log("p")) > len(before))
    assert status_of(await cluster.client.get("pods", "p"))["restartCount"] == 0


def is_process(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


WRITE = """
i=0
while :; do
    i=$((i+1))
    if echo hello > /data/$i && test -s /data/$i; then echo good; else echo full; fi
    sleep 0.1
done
"""


@shared
async def test_a_full_volume_fails_writes_or_evicts_the_pod(cluster: ProcessCluster) -> None:
    volumes = [{"name": "data", "emptyDir": {"sizeLimit": "3Mi"}}, {"name": "other", "emptyDir": {}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    await cluster.create("p", {"args": [WRITE], "volumeMounts": mounts}, volumes=volumes)
    await cluster.until_log("p", "good")

    with pytest.raises(ValueError, match="no size limit"):
        await cluster.cluster.faults.fill_volume(key(cluster, "p"), "other")
    await cluster.cluster.faults.fill_volume(key(cluster, "p"), "data")

    if cluster.runtime.namespaces:
        await until_more(cluster, "p", "full")
        await cluster.cluster.faults.clear_volume(key(cluster, "p"), "data")
        await until_more(cluster, "p", "good")
    else:
        assert (await cluster.wait("p", has_phase("Failed")))["status"]["reason"] == "Evicted"


@shared
async def test_a_deleted_claim_loses_its_data(cluster: ProcessCluster) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {
        "args": ["ls /data; touch /data/file; echo done; sleep 3600"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    for name, expected in (("first", "done"), ("second", "file\ndone")):
        if name == "first":
            await cluster.create_object(CLAIM)
        await cluster.create(name, container, volumes=volumes)
        await cluster.until_log(name, "done")
        assert cluster.log(name) == expected

    await cluster.cluster.faults.delete_claim(key(cluster, "data"))

    await cluster.create_object(CLAIM)
    await cluster.create("third", container, volumes=volumes)
    await cluster.until_log("third", "done")
    assert cluster.log("third") == "done"


@ONE_MODE
@shared
async def test_a_blocked_pod_waits_for_the_api_server(cluster: ProcessCluster) -> None:
    container = python_container(ASK, TLS="yes")
    variables = "SERVER_HOST=$KUBERNETES_SERVICE_HOST SERVER_PORT=$KUBERNETES_SERVICE_PORT"
    container["args"] = [f"export {variables}; {container['args'][0]}"]
    for name in ("p", "other"):
        await cluster.create(name, container)
        await cluster.until_log(name, "answer 2")

    await cluster.cluster.faults.block_api_server(key(cluster, "p"))

    await until_more(cluster, "p", "timeout")
    await until_more(cluster, "other", "answer")
    await cluster.cluster.faults.unblock_api_server(key(cluster, "p"))
    await until_more(cluster, "p", "answer")


@ONE_MODE
@shared
async def test_a_blocked_pod_reaches_no_service_and_services_do_not_reach_it(cluster: ProcessCluster) -> None:
    ports = [{"port": 80, "targetPort": 8080}]
    for name in ("web", "db"):
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
        await cluster.create_object({**service, "spec": {"selector": {"app": name}, "ports": ports}})
        probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
        await cluster.create(name, {**python_container(WEB), "readinessProbe": probe}, labels={"app": name})
        await cluster.wait(name, is_ready)
    hosts = {name: (await cluster.client.get("services", name))["spec"]["clusterIP"] for name in ("web", "db")}
    for name, target in (("p", "web"), ("other", "web"), ("reader", "db")):
        container = python_container(ASK, TLS="no", SERVER_HOST=hosts[target], SERVER_PORT="80")
        await cluster.create(name, container)
        await cluster.until_log(name, "answer 2")

    for name in ("p", "db"):
        await cluster.cluster.faults.block_services(key(cluster, name))

    for name in ("p", "reader"):
        await until_more(cluster, name, "timeout")
    await until_more(cluster, "other", "answer")
    for name in ("p", "db"):
        await cluster.cluster.faults.unblock_services(key(cluster, name))
    for name in ("p", "reader"):
        await until_more(cluster, name, "answer")


@limited
@alone
async def test_a_node_that_is_switched_off_loses_its_processes_until_it_is_on_again(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [COUNT]})
    await cluster.wait("p", is_ready)
    pid = cluster.process_pod("p").containers["c"].pid

    await cluster.cluster.faults.stop_node("node-1")

    assert not is_process(pid)
    assert is_ready(await cluster.client.get("pods", "p")), "nobody reports it"
    await cluster.cluster.faults.start_node("node-1")
    pod = await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 1 and is_ready(pod))
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 137


async def write(cluster: ProcessCluster) -> str:
    """Write to the volume; return "written", or "full"."""
    output = await cluster.execute("p", "sh", "-c", "if echo x > /full/x; then echo written; else echo full; fi")
    return output.split()[-1]


@ONE_MODE
@shared
@alone
async def test_each_fault_is_a_command(cluster: ProcessCluster) -> None:
    volumes = [
        {"name": "full", "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    await cluster.create_object(CLAIM)
    await cluster.create("p", {"args": [COUNT], "volumeMounts": mounts}, volumes=volumes)
    await cluster.wait("p", is_ready)
    pod, blocks = cluster.process_pod("p"), cluster.runtime.service_blocks
    claim = await cluster.client.get("persistentvolumeclaims", "data")
    (kept,) = (cluster.runtime.options.directory / "claims").glob(f"*-{claim.uid}")

    with TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "config"
        cluster.cluster.write_kubeconfig(kubeconfig)

        async def fault(*arguments: str, code: int = 0) -> str:
            command = ["fault", *arguments, "-n", cluster.namespace, "--kubeconfig", str(kubeconfig)]
            result = await asyncio.to_thread(CliRunner().invoke, main, command)
            assert result.exit_code == code, result.output
            caused.add(arguments[0])
            return result.output

        caused: set[str] = set()
        assert await fault("freeze", "p", "-c", "c") == "freeze p\n"
        await cluster.until(lambda: process_state(pod.containers["c"].pid) == "T")
        await fault("resume", "p")
        await cluster.until(lambda: process_state(pod.containers["c"].pid) != "T")
        await fault("fill-volume", "p", "--volume", "full")
        assert await write(cluster) == "full"
        await fault("clear-volume", "p", "--volume", "full")
        assert await write(cluster) == "written"
        await fault("block-api-server", "p")
        await cluster.until(lambda: pod.sandbox.api_proxy.is_blocked)
        await fault("unblock-api-server", "p")
        await cluster.until(lambda: not pod.sandbox.api_proxy.is_blocked)
        await fault("block-services", "p")
        assert blocks.pods == {pod.key}
        await fault("unblock-services", "p")
        assert blocks.pods == set()
        assert kept.is_dir()
        await fault("delete-claim", "data")
        assert not kept.exists()
        await fault("kill", "p")
        await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 1)
        await fault("stop-node", "node-1")
        await fault("start-node", "node-1")
        await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 2)
        assert caused == set(FAULTS)

        text = await fault("kill", "missing", code=1)
        assert f"pod {cluster.namespace}/missing does not run as processes (those that do: {pod.key})" in text
