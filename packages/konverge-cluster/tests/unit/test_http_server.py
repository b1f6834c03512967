"""The HTTP server: authentication, limits, streaming of watches, shutdown."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from konverge import Client, load_config
from konverge.certificates import Authority, KeyPair
from konverge.k8s.authentication.v1 import SelfSubjectReview
from konverge_cluster.embedded_server import EmbeddedServer

pytestmark = pytest.mark.real_time

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def session(
    server: EmbeddedServer, pair: KeyPair | None = None, **options: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=server.authority.certificate.decode())
    if pair is not None:
        _load(context, pair)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(server.url, connector=connector, **options) as created:
        yield created


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def status(asking: aiohttp.ClientSession, path: str = CONFIG_MAPS, **options: Any) -> int:
    async with asking.get(path, **options) as response:
        return response.status


async def test_a_token_or_a_client_certificate_is_required() -> None:
    async with EmbeddedServer() as server:
        async with session(server) as asking:
            assert await status(asking) == 403  # anonymous
            assert await status(asking, headers=bearer("wrong")) == 401
            assert await status(asking, headers={"Authorization": "Basic eDp5"}) == 403
            assert await status(asking, headers=bearer(server.admin_token)) == 200
            assert await status(asking, "/readyz") == 200
        pair = server.authority.sign("alice", groups=["system:masters"])
        async with session(server, pair) as asking:
            assert await status(asking) == 200
        with pytest.raises(aiohttp.ClientError):
            async with session(server, Authority("other").sign("mallory")) as asking:
                await status(asking)


@pytest.mark.parametrize("keys", [("token",), ("client-certificate-data", "client-key-data")], ids=["token", "pair"])
async def test_each_of_both_credentials_in_the_kubeconfig_is_enough(keys: tuple[str, ...], tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        document = server.kubeconfig()
        user = document["users"][0]["user"]
        assert set(user) == {"token", "client-certificate-data", "client-key-data"}
        document["users"][0]["user"] = {key: user[key] for key in keys}
        (tmp_path / "config").write_text(yaml.safe_dump(document))
        async with Client.connect(load_config(kubeconfig=str(tmp_path / "config"))) as client:
            review = await client.create(SelfSubjectReview())
        assert review.status.user_info is not None
        assert review.status.user_info.username == "kubernetes-admin"


async def test_a_host_header_of_another_machine_is_rejected() -> None:
    async with EmbeddedServer(open_to_all=True) as server, session(server) as asking:
        assert await status(asking, headers={"Host": "evil.example.com"}) == 403
        assert await status(asking, headers={"Host": "localhost:1234"}) == 200
        assert await status(asking, headers={"Host": "[::1]:1234"}) == 200


async def test_a_body_over_the_limit_is_rejected_and_nothing_is_stored() -> None:
    async with EmbeddedServer(open_to_all=True, plain=True) as server, aiohttp.ClientSession(server.url) as asking:
        version = server.cluster.storage.revision
        body = b'{"metadata":{"name":"a"},"data":{"k":"' + b"x" * 3_200_000 + b'"}}'

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 65536):
                yield body[start : start + 65536]

        for data in (io.BytesIO(body), chunks()):
            async with asking.post(CONFIG_MAPS, data=data) as response:
                assert response.status == 413
                assert (await response.json())["message"] == "Request entity too large: limit is 3145728"
        assert server.cluster.storage.revision == version


async def test_warnings_are_sent_as_headers() -> None:
    async with EmbeddedServer(open_to_all=True, plain=True) as server, aiohttp.ClientSession(server.url) as asking:
        body = {"metadata": {"name": "a", "foo": 1}, "bogus": 1}
        async with asking.post(CONFIG_MAPS, json=body) as response:
            assert response.status == 201
            warnings = response.headers.getall("Warning")

    assert warnings == ['299 - "unknown field \\"metadata.foo\\""', '299 - "unknown field \\"bogus\\""']


async def test_a_watch_is_streamed_and_ends_when_the_client_disconnects() -> None:
    async with EmbeddedServer(open_to_all=True, plain=True) as server, aiohttp.ClientSession(server.url) as asking:
        found = server.cluster.storage.collection(("", "configmaps"))
        async with asking.get(f"{CONFIG_MAPS}?watch=1") as response:
            assert response.headers["Transfer-Encoding"] == "chunked"
            for name in "ab":
                async with asking.post(CONFIG_MAPS, json={"metadata": {"name": name}}) as created:
                    assert created.status == 201
                event = json.loads(await response.content.readline())
                assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
        for _ in range(10_000):
            await asyncio.sleep(0)
        assert found.watcher_count == 0


async def test_stopping_ends_open_watches_cleanly() -> None:
    server = EmbeddedServer(open_to_all=True, plain=True)
    await server.start()
    async with aiohttp.ClientSession(server.url) as asking, asking.get(f"{CONFIG_MAPS}?watch=1") as response:
        await server.stop()
        assert await response.content.read() == b""


async def _ask(server: EmbeddedServer, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request over its own connection and wait for the first bytes of the response."""
    context = ssl.create_default_context(cadata=server.authority.certificate.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]), ssl=context)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
    return reader, writer


async def test_stopping_waits_neither_for_idle_connections_nor_for_watches() -> None:
    server = EmbeddedServer(open_to_all=True)
    await server.start()
    opened = [await _ask(server, path) for path in ("/readyz", f"{CONFIG_MAPS}?watch=1", CONFIG_MAPS)]
    async with asyncio.timeout(25):
        await server.stop()
        for reader, _ in opened:
            await reader.read()
    for reader, writer in opened:
        assert reader.at_eof()
        writer.close()


async def test_stopping_does_not_wait_for_a_client_that_does_not_read() -> None:
    server = EmbeddedServer(open_to_all=True)
    await server.start()
    async with session(server) as asking:
        for number in range(16):
            body = {"metadata": {"name": f"big{number}"}, "data": {"k": "x" * 900_000}}
            async with asking.post(CONFIG_MAPS, json=body) as response:
                assert response.status == 201
    _, writer = await _ask(server, f"{CONFIG_MAPS}?watch=1")
    async with asyncio.timeout(25):
        await server.stop()
    writer.transport.abort()


async def test_the_kubeconfig_works_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with EmbeddedServer() as server:
        server.write_kubeconfig(path)
        config = yaml.safe_load(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == server.url
        token = config["users"][0]["user"]["token"]
        async with session(server, headers=bearer(token)) as asking:
            assert await status(asking) == 200

    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_kubeconfig_is_a_new_file_that_replaces_a_link(tmp_path: Path) -> None:
    other = tmp_path / "of-somebody-else"
    other.write_text("unchanged")
    path = tmp_path / "kubeconfig"
    path.symlink_to(other)

    async with EmbeddedServer() as server:
        server.write_kubeconfig(path)

    assert other.read_text() == "unchanged"
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "of-somebody-else"]


async def test_escaped_and_repeated_query_parameters_are_decoded() -> None:
    async with EmbeddedServer(open_to_all=True, plain=True) as server, aiohttp.ClientSession(server.url) as asking:
        async with asking.post(f"{CONFIG_MAPS}?dryRun=All&dryRun=All", json={"metadata": {"name": "a"}}) as response:
            assert response.status == 201
        async with asking.get(f"{CONFIG_MAPS}?labelSelector=a+in+%28x%2Cy%29") as response:
            assert response.status == 200


def _send_half_requests(port: int, count: int) -> list[socket.socket]:
    """Send requests without a body, every second one with complete headers."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for number, connection in enumerate(opened):
        connection.send(head if number % 2 else head + b"\r\n")
    return opened


async def test_connections_without_a_complete_request_are_limited_and_watches_are_not() -> None:
    async with (
        EmbeddedServer(plain=True) as server,
        aiohttp.ClientSession(server.url, headers=bearer(server.admin_token)) as asking,
    ):
        watches = [await asking.get(f"{CONFIG_MAPS}?watch=1") for _ in range(20)]
        half = await asyncio.to_thread(_send_half_requests, int(server.url.rpartition(":")[2]), 400)
        closed = half[: 400 - 256]
        for connection in closed:
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(connection.recv, 1) == b""
        async with asking.post(CONFIG_MAPS, json={"metadata": {"name": "a"}}) as created:
            assert created.status == 201
        for watch in watches:
            assert json.loads(await watch.content.readline())["type"] == "ADDED"
            watch.close()
        for connection in half:
            connection.close()
