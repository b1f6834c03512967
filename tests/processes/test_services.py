"""Services of process nodes: addresses on loopback that forward to ready pods."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from konverge.objects import Key
from process_clusters import LIMIT, ONE_MODE, ProcessCluster, has_phase, is_ready, python_container, shared, terminated

pytestmark = [pytest.mark.processes, ONE_MODE]

# Each connection is answered with the name of the pod, and then with what was sent, until the end of the input.
SERVER = """
import os, socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(os.environ["HOSTNAME"].encode() + b"\\n")
        for line in self.rfile:
            self.wfile.write(line)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""


def server(**more: Any) -> dict[str, Any]:
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    return {**python_container(SERVER), "readinessProbe": probe, **more}


def service(name: str, **spec: Any) -> dict[str, Any]:
    full = {"selector": {"app": name}, "ports": [{"name": "echo", "port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": full}


async def address(cluster: ProcessCluster, name: str) -> tuple[str, int]:
    found = await cluster.client.get("services", name)
    return str(found["spec"]["clusterIP"]), int(found["spec"]["ports"][0]["port"])


async def ask(at: tuple[str, int]) -> str:
    """Return the pod that answers at an address, "" if the connection is refused or reset."""
    with suppress(ConnectionError):
        reader, writer = await asyncio.open_connection(*at)
        try:
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()
    return ""


async def until_answer(at: tuple[str, int], *expected: str) -> None:
    async with asyncio.timeout(LIMIT):
        while await ask(at) not in expected:  # noqa: ASYNC110 - a socket has no event for this
            await asyncio.sleep(0.02)


@shared
async def test_a_service_forwards_to_its_ready_pods_in_turn(cluster: ProcessCluster) -> None:
    for name in ("a", "b"):
        await cluster.create(name, server(), labels={"app": "echo"})
    await cluster.create_object(service("echo", type="NodePort"))
    at = await address(cluster, "echo")
    for name in ("a", "b"):
        await cluster.wait(name, is_ready)
        await until_answer(at, name)

    answers = [await ask(at) for _ in range(10)]

    assert sorted(answers) == ["a"] * 5 + ["b"] * 5
    found = await cluster.client.get("services", "echo")
    node = (await cluster.client.get("nodes", "node-1"))["status"]["addresses"][0]["address"]
    assert await ask((node, found["spec"]["ports"][0]["nodePort"])) in ("a", "b")


@shared
async def test_each_pod_has_an_address_of_its_own(cluster: ProcessCluster) -> None:
    for name in ("a", "b"):
        await cluster.create(name, server())

    pods = [await cluster.wait(name, is_ready) for name in ("a", "b")]

    addresses = [str(pod["status"]["podIP"]) for pod in pods]
    assert addresses[0] != addresses[1]
    assert [await ask((one, 8080)) for one in addresses] == ["a", "b"]
    assert await ask((str(pods[0]["status"]["hostIP"]), 8080)) == ""


@shared
async def test_a_service_without_ready_endpoints_refuses_at_once(cluster: ProcessCluster) -> None:
    await cluster.create_object(service("echo"))
    at = await address(cluster, "echo")

    assert await ask(at) == ""
    unready = server(
        readinessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1},
        startupProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    )
    await cluster.create("a", unready, labels={"app": "echo"})
    await cluster.until_event("a", "Readiness probe failed")
    assert await ask(at) == ""
    await cluster.create("b", server(), labels={"app": "echo"})
    await until_answer(at, "b")
    await cluster.client.delete(await cluster.client.get("pods", "b"), grace_period=0)
    await until_answer(at, "")


@shared
async def test_a_connection_to_a_removed_endpoint_continues(cluster: ProcessCluster) -> None:
    for name in ("a", "b"):
        await cluster.create(name, server(), labels={"app": "echo"})
    await cluster.create_object(service("echo"))
    at = await address(cluster, "echo")
    for name in ("a", "b"):
        await cluster.wait(name, is_ready)
        await until_answer(at, name)
    reader, writer = await asyncio.open_connection(*at)
    old = (await reader.readline()).decode().strip()
    other = {"a": "b", "b": "a"}[old]

    await cluster.client.patch("pods", old, {"metadata": {"labels": {"app": "removed"}}})
    async with asyncio.timeout(LIMIT):
        while {await ask(at) for _ in range(2)} != {other}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    writer.write(b"still there\n")
    assert await reader.readline() == b"still there\n"
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()


@shared
async def test_a_port_that_cannot_be_bound_is_replaced_by_a_high_one(cluster: ProcessCluster) -> None:
    await cluster.create_object(service("echo"))
    at = await address(cluster, "echo")
    with socket.socket() as taken:
        taken.bind(at)
        taken.listen()
        await cluster.create("a", server(), labels={"app": "echo"})
        await cluster.until_event("echo", "PortReplaced: cannot listen on")

    proxy = cluster.cluster.service_proxy
    assert proxy is not None
    moved = proxy.addresses(Key(cluster.namespace, "echo"))[at]
    assert moved[0] == at[0]
    assert moved[1] >= 1024
    assert await ask(moved) == "a"


@shared
async def test_a_headless_service_lists_the_addresses_of_its_pods(cluster: ProcessCluster) -> None:
    await cluster.create_object(service("echo", clusterIP="None"))
    await cluster.create("a", server(), labels={"app": "echo"})
    pod = await cluster.wait("a", is_ready)

    async def listed() -> str:
        slices = await cluster.client.list("endpointslices", namespace=cluster.namespace)
        return " ".join(one for each in slices for end in each["endpoints"] or () for one in end["addresses"])

    await cluster.until_async(listed, pod["status"]["podIP"])


@shared
async def test_the_api_server_answers_at_the_address_of_its_service(cluster: ProcessCluster) -> None:
    found = await cluster.client.get("services", "kubernetes", namespace="default")
    at = str(found["spec"]["clusterIP"]), 443

    async with asyncio.timeout(LIMIT):
        while True:
            with suppress(ConnectionError):
                _, writer = await asyncio.open_connection(*at)
                break
            await asyncio.sleep(0.1)

    writer.close()


WILDCARDS = {
    "v4": "import socket, time; s = socket.create_server(('0.0.0.0', 0)); time.sleep(3600)",
    "v6": "import socket, time; s = socket.create_server(('::', 0), family=socket.AF_INET6); time.sleep(3600)",
}


@shared
async def test_a_container_that_listens_on_all_addresses_fails(cluster: ProcessCluster) -> None:
    for name, program in WILDCARDS.items():
        await cluster.create(name, python_container(program), restartPolicy="Never")
    await cluster.create("good", server())

    for name in WILDCARDS:
        ended = terminated(await cluster.wait(name, has_phase("Failed")))
        assert (ended["reason"], ended["exitCode"]) == ("WildcardListener", 137)
        assert "let it listen on $(POD_IP):" in ended["message"]
    assert (await cluster.wait("good", is_ready))["status"]["containerStatuses"][0]["restartCount"] == 0
    await cluster.until_event("v4", "WildcardListener: Container c listens on 0.0.0.0:")
