"""A WebApp of a real HTTP server is scaled, rolled and healed, and no request fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Set
from contextlib import asynccontextmanager

import pytest

from konverge import Client
from konverge.client import has_condition
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Namespace, Pod, Service
from konverge_cluster.processes import LocalImage
from konverge_operators.webapp.api import WebApp
from process_clusters import LIMIT, process_cluster, readable_python
from webapp_accounts import operating_in, refusals
from webapps import webapp

pytestmark = [pytest.mark.processes, pytest.mark.plain_loop]

PORT = 8080

# It answers with its version and its pod. After SIGTERM version 1 serves until no request has come for a second;
# version 2 accepts nothing more. Both end when the requests in flight are answered.
SERVER = """
import http.server, os, signal, threading, time
version, last = os.environ["VERSION"], time.monotonic()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global last
        last = time.monotonic()
        time.sleep(0.01)
        body = f"{version} {os.environ['NAME']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
def end():
    while version == "1" and time.monotonic() < last + 1:
        time.sleep(0.1)
    server.shutdown()
server = Server((os.environ["ADDRESS"], 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end).start())
server.serve_forever()
server.server_close()
"""


def image(version: str) -> LocalImage:
    env = {"VERSION": version, "ADDRESS": "$(POD_IP)", "NAME": "$(POD_NAME)"}
    return LocalImage(f"web:{version}", command=[readable_python(), "-u", "-c", SERVER], env=env)


async def get(host: str) -> str:
    """Return the body of a response, or what failed."""
    try:
        async with asyncio.timeout(LIMIT):
            reader, writer = await asyncio.open_connection(host, PORT)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                return body.decode() if head.startswith(b"HTTP/1.1 200 ") else f"bad response: {head!r}"
            finally:
                writer.close()
    except OSError as error:
        return f"failed: {error!r}"


class Users:
    """Users who send requests to the application all the time."""

    def __init__(self, client: Client, host: str) -> None:
        self.answers: list[str] = []
        self._client = client
        self._host = host

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        """Send requests during the block, four at a time."""
        done = asyncio.Event()

        async def ask() -> None:
            while not done.is_set():
                self.answers.append(await get(self._host))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(ask())
            try:
                yield
            finally:
                done.set()

    async def reach(self, replicas: int, version: str, *, gone: Set[str] = frozenset()) -> set[str]:
        """Wait until so many pods of a version, and no others, answer in turn; return their names.

        None of them is one of `gone`.
        """
        async with asyncio.timeout(LIMIT):
            while True:
                pods = {one.name for one in await self._client.list(Pod) if one.metadata.deletion_timestamp is None}
                before = len(self.answers)
                await asyncio.sleep(0.2)
                answers = set(self.answers[before:])
                if len(pods - gone) == replicas and answers == {f"{version} {one}" for one in pods}:
                    return pods


async def ready(client: Client) -> None:
    await client.wait_for(WebApp, "web", has_condition("Ready"), timeout=LIMIT)


@pytest.mark.real_time(limit=240)
async def test_an_application_is_scaled_rolled_and_healed_without_a_failed_request() -> None:
    async with process_cluster(image("1"), image("2")) as cluster, operating_in(cluster.cluster) as manager:
        client = cluster.client
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await client.patch(Namespace, cluster.namespace, {"metadata": {"labels": labels}})
        app = webapp(image="web:1", replicas=2, port=PORT, probes={"readiness": {"periodSeconds": 1}})
        app.metadata.namespace = cluster.namespace
        await client.create(app)
        await ready(client)
        host = str((await client.get(Service, "web")).spec.cluster_ip)
        await cluster.until_async(lambda: version_of(host), "1")

        users = Users(client, host)
        async with users.asking():
            pods = await users.reach(2, "1")
            await client.delete(Deployment, "web")
            await users.reach(2, "1", gone=pods)

            await client.scale(WebApp, "web", 4)
            await users.reach(4, "1")
            await client.scale(WebApp, "web", 3)
            await users.reach(3, "1")

            await client.patch(WebApp, "web", {"spec": {"image": "web:2"}})
            pods = await users.reach(3, "2")
            await client.delete(Pod, min(pods))
            await users.reach(3, "2", gone={min(pods)})
            await ready(client)

        assert [one for one in users.answers if not one.startswith(("1 web-", "2 web-"))] == []
        assert refusals(manager) == []


async def version_of(host: str) -> str:
    """Return the version that answers, or the first word of what failed."""
    return (await get(host)).partition(" ")[0]
