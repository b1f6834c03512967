"""How the client gets to a real API server and who it is there: plugins, rotation, proxies."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import Client, RetryPolicy, load_config
from konverge.errors import Forbidden, TransportError, Unauthorized
from konverge.k8s.core.v1 import Namespace
from konverge.objects import Unstructured
from konverge.testing import ControlPlane


def kubeconfig(tmp_path: Path, plane: ControlPlane, user: dict[str, Any], **cluster: Any) -> Path:
    """Write a kubeconfig of this server with another way to be somebody."""
    ca = base64.b64encode(Path(plane.ca_file).read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": plane.url, "certificate-authority-data": ca, **cluster}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def who_am_i(client: Client) -> str:
    review = Unstructured(apiVersion="authentication.k8s.io/v1", kind="SelfSubjectReview", metadata={})
    user: str = (await client.create(review))["status"]["userInfo"]["username"]
    return user


async def test_an_exec_plugin_says_who_we_are_and_runs_once(control_plane: ControlPlane, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": control_plane.admin_token, "expirationTimestamp": "2099-01-01T00:00:00Z"},
    }
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho ran >> {log}\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    path = kubeconfig(tmp_path, control_plane, {"exec": spec})
    async with Client.connect(load_config(kubeconfig=path)) as client:
        for _ in range(3):
            await client.get(Namespace, "default")
        assert await who_am_i(client)
    assert log.read_text() == "ran\n"
    seen = await asyncio.to_thread(control_plane.kubectl, "get", "namespace", "default", kubeconfig=path)
    assert "default" in seen


async def test_a_token_file_that_rotates_is_read_again(control_plane: ControlPlane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("stale")
    path = kubeconfig(tmp_path, control_plane, {"tokenFile": str(token)})
    async with Client.connect(load_config(kubeconfig=path), retry=RetryPolicy(attempts=1)) as client:
        with pytest.raises(Unauthorized):
            await client.get(Namespace, "default")
        token.write_text(control_plane.admin_token)
        # The 401 makes the client look at the file at once, without waiting for its next look.
        await client.get(Namespace, "default")


async def test_a_client_certificate_that_rotates_is_used(control_plane: ControlPlane, tmp_path: Path) -> None:
    def credentials_of(user: str) -> dict[str, str]:
        document = yaml.safe_load(Path(control_plane.kubeconfig_for(user)).read_text())
        found: dict[str, str] = document["users"][0]["user"]
        return found

    def put(user: str) -> None:
        given = credentials_of(user)
        for name in ("client-certificate", "client-key"):
            inline = given.get(f"{name}-data")
            data = base64.b64decode(inline) if inline else Path(given[name]).read_bytes()
            (tmp_path / name).write_bytes(data)

    put("alice")
    user = {name: str(tmp_path / name) for name in ("client-certificate", "client-key")}
    path = kubeconfig(tmp_path, control_plane, user)
    config = load_config(kubeconfig=path)
    async with Client.connect(config, retry=RetryPolicy(attempts=1)) as client:
        assert await who_am_i(client) == "alice"
        put("bob")
    async with Client.connect(load_config(kubeconfig=path)) as client:
        assert await who_am_i(client) == "bob"
        with pytest.raises(Forbidden, match='User "bob" may not'):
            await client.get(Namespace, "default")


async def test_requests_go_through_a_proxy(control_plane: ControlPlane, tmp_path: Path) -> None:
    asked: list[bytes] = []
    over = asyncio.Event()

    async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
        sink.close()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        to_reader, to_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pipe(reader, to_writer), pipe(to_reader, writer), return_exceptions=True)
        to_writer.close()
        writer.close()
        over.set()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        user = {"token": control_plane.admin_token}
        path = kubeconfig(tmp_path, control_plane, user, **{"proxy-url": f"http://127.0.0.1:{port}"})
        async with Client.connect(load_config(kubeconfig=path)) as client:
            assert (await client.get(Namespace, "default")).name == "default"
        address = control_plane.url.removeprefix("https://").encode()
        assert asked == [b"CONNECT " + address + b" HTTP/1.1"]
        await over.wait()


async def test_a_wrong_server_name_is_refused_and_the_right_one_taken(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    user = {"token": control_plane.admin_token}
    path = kubeconfig(tmp_path, control_plane, user, **{"tls-server-name": "kubernetes.default.svc"})
    async with Client.connect(load_config(kubeconfig=path)) as client:
        assert (await client.get(Namespace, "default")).name == "default"
    path = kubeconfig(tmp_path, control_plane, user, **{"tls-server-name": "elsewhere.example.com"})
    async with Client.connect(load_config(kubeconfig=path), retry=RetryPolicy(attempts=1)) as client:
        with pytest.raises(TransportError, match=r"elsewhere\.example\.com"):
            await client.get(Namespace, "default")
