"""A real HTTP server behind a Service: a rolling update with readiness probes and preStop fails no request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from konverge.client import is_deployment_complete
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import Unstructured
from process_clusters import LIMIT, ONE_MODE, ProcessCluster, python_container, shared

pytestmark = [pytest.mark.processes, ONE_MODE]

# It answers with its version. After SIGTERM it accepts nothing more, and ends when the requests in flight are answered.
SERVER = """
import http.server, os, signal, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.01)
        body = os.environ["VERSION"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
server = Server((os.environ["POD_IP"], 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
server.server_close()
"""


def deployment(version: str) -> dict[str, Any]:
    container = python_container(SERVER, VERSION=version)
    container |= {
        "name": "c",
        "image": "sh:1",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    }
    spec = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 10}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    full = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template, "strategy": strategy}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": full}


async def get(host: str, port: int) -> str:
    """Return the body of a response, or what failed."""
    try:
        async with asyncio.timeout(LIMIT):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                return body.decode() if head.startswith(b"HTTP/1.1 200 ") else f"bad response: {head!r}"
            finally:
                writer.close()
    except OSError as error:
        return f"failed: {error!r}"


@shared
async def test_a_rolling_update_fails_no_request(cluster: ProcessCluster) -> None:
    ports = [{"port": 80, "targetPort": "http"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    service["spec"] = {"selector": {"app": "web"}, "ports": ports}
    address = str((await cluster.client.create(Unstructured(service)))["spec"]["clusterIP"])
    await cluster.client.create(Unstructured(deployment("1")))
    await cluster.client.wait_for(Deployment, "web", is_deployment_complete(), timeout=LIMIT)
    await cluster.until_async(lambda: get(address, 80), "1")
    answers: list[str] = []
    done = asyncio.Event()

    async def ask() -> None:
        while not done.is_set():
            answers.append(await get(address, 80))

    async with asyncio.TaskGroup() as clients:
        for _ in range(4):
            clients.create_task(ask())
        try:
            await cluster.client.patch("deployments", "web", {"spec": deployment("2")["spec"]})
            await cluster.client.wait_for(Deployment, "web", is_deployment_complete(), timeout=LIMIT)
            await cluster.until_async(lambda: only(cluster, "2"), "2")
        finally:
            done.set()

    assert set(answers) == {"1", "2"}
    assert answers[-1] == "2"
    assert len(answers) > 100


async def only(cluster: ProcessCluster, version: str) -> str:
    """Return the version of all pods, "" while there are several."""
    pods = await cluster.client.list("pods", namespace=cluster.namespace)
    found = {one["value"] for pod in pods for one in pod["spec"]["containers"][0]["env"] if one["name"] == "VERSION"}
    with suppress(ValueError):
        (only,) = found
        return str(only)
    return ""
