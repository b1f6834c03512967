"""Faults on purpose: each does what it is named after, and can be undone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.objects import Key
from process_clusters import (
    ProcessCluster,
    Start,
    has_phase,
    is_ready,
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
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {
        "args": ["ls /data; touch /data/file; echo done; sleep 3600"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    for name, expected in (("first", "done"), ("second", "file\ndone")):
        if name == "first":
            await cluster.create_object(claim)
        await cluster.create(name, container, volumes=volumes)
        await cluster.until_log(name, "done")
        assert cluster.log(name) == expected

    await cluster.cluster.faults.delete_claim(key(cluster, "data"))

    await cluster.create_object(claim)
    await cluster.create("third", container, volumes=volumes)
    await cluster.until_log("third", "done")
    assert cluster.log("third") == "done"


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


@pytest.mark.real_time
async def test_a_node_that_is_switched_off_loses_its_processes_until_it_is_on_again(start: Start) -> None:
    async with start() as cluster:
        await cluster.create("p", {"args": [COUNT]})
        await cluster.wait("p", is_ready)
        pid = cluster.process_pod("p").containers["c"].pid

        await cluster.cluster.faults.stop_node("node-1")

        assert not is_process(pid)
        assert is_ready(await cluster.client.get("pods", "p")), "nobody reports it"
        await cluster.cluster.faults.start_node("node-1")
        pod = await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 1 and is_ready(pod))
        assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 137


@pytest.mark.real_time
async def test_a_fault_is_a_command(start: Start, tmp_path: Path) -> None:
    async with start() as cluster:
        cluster.cluster.write_kubeconfig(tmp_path / "config")
        await cluster.create("p", {"args": [COUNT]})
        await cluster.wait("p", is_ready)

        async def run(*arguments: str) -> tuple[int, str]:
            command = [sys.executable, "-m", "konverge", "fault", *arguments, "--kubeconfig", str(tmp_path / "config")]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        assert await run("kill", "p", "-n", "test") == (0, "kill p\n")
        await cluster.wait("p", lambda pod: status_of(pod)["restartCount"] == 1 and is_ready(pod))
        code, text = await run("kill", "missing", "-n", "test")
        assert code == 1
        assert "pod test/missing does not run as processes (those that do: test/p)" in text
