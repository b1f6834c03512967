"""Probes and metrics over a socket, requested as kubelet and Prometheus do."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from konverge.certificates import Authority
from konverge.errors import ConfigError
from konverge.manager.health import Check, Health
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.metrics_access import AccessDecision, AccessReviews
from konverge.manager.probes import ProbeServer, split_address
from konverge.manager.tls_files import TlsFiles
from konverge.objects import Key
from probe_requests import get

pytestmark = pytest.mark.real_time(limit=60)

FORBIDDEN = "Deployment: list is forbidden (needs list, watch on deployments.apps)"


@asynccontextmanager
async def serving(*checks: Check, **options: Any) -> AsyncIterator[ProbeServer]:
    async with ProbeServer("127.0.0.1:0", Health(*checks), **options) as server:
        yield server


async def test_a_healthy_process_responds_ok() -> None:
    async with serving(Check("cache", str)) as server:
        for path in ("/healthz", "/readyz", "/healthz/", "/readyz/cache"):
            response = await get(server.port, path)
            assert (response.status, response.text) == (200, "ok")
            assert response.headers["content-type"] == "text/plain; charset=utf-8"
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-cache"


async def test_a_failed_check_is_a_line_with_its_reason() -> None:
    async with serving(Check("cache", lambda: FORBIDDEN), Check("lease", str)) as server:
        response = await get(server.port, "/readyz")

        assert response.status == 500
        assert response.text.splitlines() == [
            "[+]ping ok",
            f"[-]cache failed: {FORBIDDEN}",
            "[+]lease ok",
            "readyz check failed",
        ]
        assert (await get(server.port, "/readyz/cache")).text == f"{FORBIDDEN}\n"
        assert (await get(server.port, "/readyz/lease")).status == 200


async def test_a_failed_ready_check_does_not_fail_the_live_check() -> None:
    async with serving(Check("cache", lambda: "no"), Check("loop", lambda: "", live=True)) as server:
        assert (await get(server.port, "/readyz")).status == 500
        response = await get(server.port, "/healthz?verbose")
        assert (response.status, response.text) == (200, "[+]ping ok\n[+]loop ok\nhealthz check passed\n")


async def test_checks_can_be_excluded_as_with_the_api_server() -> None:
    async with serving(Check("cache", lambda: "no")) as server:
        response = await get(server.port, "/readyz?exclude=cache&exclude=what&verbose")

        assert response.status == 200
        assert response.text.splitlines() == [
            "[+]ping ok",
            "[+]cache excluded: ok",
            'warn: some health checks cannot be excluded: no matches for "what"',
            "readyz check passed",
        ]


async def test_a_check_that_breaks_is_a_failed_check() -> None:
    def breaks() -> str:
        raise LookupError("not\nfound")

    async with serving(Check("odd", breaks), Check("well", str)) as server:
        response = await get(server.port, "/readyz")

        assert response.status == 500
        assert "[-]odd failed: the check failed: LookupError: not found\n[+]well ok" in response.text


@pytest.mark.parametrize(
    "path",
    ["/", "/healthz/none", "/healthz/ping/more", "/metrics", "/debug/why/c/n/x", "/debug/why", "/nothing", "/debug"],
)
async def test_an_unknown_path_is_not_found(path: str) -> None:
    async with serving() as server:
        assert (await get(server.port, path)).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_only_reading_is_allowed(method: str) -> None:
    async with serving() as server:
        response = await get(server.port, "/healthz", method=method)
        assert response.status == 405
        assert response.headers["allow"] == "GET, HEAD"


async def test_head_is_get_without_the_text() -> None:
    async with serving(Check("cache", lambda: "no"), registry=CollectorRegistry()) as server:
        assert (await get(server.port, "/healthz", method="HEAD")).status == 200
        response = await get(server.port, "/readyz", method="HEAD")
        assert (response.status, response.text) == (500, "")
        assert (await get(server.port, "/metrics", method="HEAD")).status == 200


async def test_metrics_come_in_the_requested_format() -> None:
    registry = CollectorRegistry()
    Counter("reconcile", "Reconciles", ["controller"], registry=registry).labels("webapp").inc()
    async with serving(registry=registry) as server:
        plain = await get(server.port, "/metrics")
        assert plain.headers["content-type"].startswith("text/plain; version=")
        assert 'reconcile_total{controller="webapp"} 1.0' in plain.text

        opened = await get(server.port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert opened.headers["content-type"].startswith("application/openmetrics-text")
        assert opened.text.endswith("# EOF\n")


async def test_why_is_called_with_controller_and_key_and_returned_as_json() -> None:
    calls: list[tuple[str, Key | None]] = []
    known = {"webapp": ["shop/web"], "node": []}

    async def why(controller: str, key: Key | None) -> Any:
        calls.append((controller, key))
        if key is None:
            return known if not controller else {controller: known[controller]} if controller in known else None
        if key.name == "odd":
            return [{"key": key}]  # what is not JSON becomes a text
        return None if key.name == "unknown" else [{"trigger": "owns Deployment"}]

    async with serving(why=why) as server:
        response = await get(server.port, "/debug/why/webapp/shop/web")
        assert response.headers["content-type"] == "application/json; charset=utf-8"
        assert response.text == '[\n  {\n    "trigger": "owns Deployment"\n  }\n]\n'
        assert json.loads(response.text) == [{"trigger": "owns Deployment"}]
        assert (await get(server.port, "/debug/why/node/node%2D1")).status == 200
        missing = await get(server.port, "/debug/why/webapp/shop/unknown")
        assert (missing.status, missing.text) == (
            404,
            "no reconcile history of webapp shop/unknown (it has that of shop/web)\n",
        )
        assert json.loads((await get(server.port, "/debug/why")).text) == known
        assert json.loads((await get(server.port, "/debug/why/node")).text) == {"node": []}
        for path in ("/debug/why/pod", "/debug/why/pod/shop/unknown"):
            assert (await get(server.port, path)).text == "there is no controller 'pod' (there are: webapp, node)\n"

        assert json.loads((await get(server.port, "/debug/why/webapp/shop/odd")).text) == [{"key": "shop/odd"}]
        empty = await get(server.port, "/debug/why/node/unknown")
        assert empty.text == "no reconcile history of node unknown (it has that of no keys)\n"

    assert calls[:2] == [("webapp", Key("shop", "web")), ("node", Key("", "node-1"))]


async def test_an_error_in_a_handler_is_500_and_the_server_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def why(controller: str, key: Key | None) -> Any:
        raise LookupError(f"secret of {controller} {key}")

    async with serving(why=why) as server:
        response = await get(server.port, "/debug/why/a/b/c")
        assert (response.status, response.text) == (500, "internal error, see the log\n")
        assert (await get(server.port, "/healthz")).status == 200
    (record,) = [record for record in caplog.records if record.name == "konverge.manager"]
    assert (record.getMessage(), vars(record)["path"]) == ("probe failed", "/debug/why/a/b/c")
    assert "secret of a b/c" in caplog.text


async def test_a_port_in_use_is_named() -> None:
    async with serving() as server:
        second = ProbeServer(f"127.0.0.1:{server.port}", Health())
        with pytest.raises(
            ConfigError,
            match=rf"^probes cannot listen on 127\.0\.0\.1:{server.port}: .*in use.* \(choose another address\)$",
        ):
            await second.start()
        await second.stop()


async def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(ConfigError, match=r"probes cannot listen on 192\.0\.2\.1:8081"):
        await ProbeServer("192.0.2.1:8081", Health()).start()


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("127.0.0.1:8081", "127.0.0.1", 8081), (":0", None, 0), ("[::1]:80", "::1", 80), ("localhost:1", "localhost", 1)],
)
def test_addresses_are_read(address: str, host: str | None, port: int) -> None:
    assert split_address(address) == (host, port)


@pytest.mark.parametrize("address", ["", "8081", "host", "host:", "host:http", "::1:80", "host:70000", "host:-1"])
def test_what_is_no_address_is_refused_with_examples(address: str) -> None:
    words = f'the address of probes is "host:port", ":8081" or "[::1]:8081", got {address!r}'
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        split_address(address)


def test_the_highest_port_is_a_port() -> None:
    assert split_address("host:65535") == ("host", 65535)
    with pytest.raises(ValueError, match="host:65536"):
        split_address("host:65536")


async def test_texts_of_rejected_requests() -> None:
    async with serving(why=lambda *_: None) as server:
        assert (await get(server.port, "/healthz", method="POST")).text == "only GET and HEAD are allowed\n"
        assert (await get(server.port, "/nothing")).text == "not found\n"
        assert (await get(server.port, "/readyz/none")).text == "there is no check named none\n"
        unknown = await get(server.port, "/debug/why/pod")
        assert (unknown.status, unknown.text) == (404, "there is no controller 'pod' (there are: none)\n")


async def test_at_most_ten_keys_with_a_history_are_named() -> None:
    def why(controller: str, key: Key | None) -> Any:
        return {"webapp": [f"shop/{number}" for number in range(11)]} if key is None else []

    async with serving(why=why) as server:
        names = ", ".join(f"shop/{number}" for number in range(10))
        missing = await get(server.port, "/debug/why/webapp/shop/none")
        assert missing.text == f"no reconcile history of webapp shop/none (it has that of {names})\n"


async def test_a_live_check_is_one_of_both_and_may_not_be_for_readiness() -> None:
    async with serving(Check("loop", lambda: "blocked", live=True, ready=False)) as server:
        assert (await get(server.port, "/healthz/loop")).text == "blocked\n"
        assert (await get(server.port, "/healthz")).status == 500
        assert (await get(server.port, "/readyz")).status == 200
        assert (await get(server.port, "/readyz/loop")).status == 404


async def test_idle_connections_do_not_keep_probes_out() -> None:
    async with serving(connections=10) as server:
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(15)]
        assert (await get(server.port, "/healthz")).status == 200
        for _, writer in idle:
            writer.close()


async def test_nothing_is_left_after_stop() -> None:
    async with serving() as server:
        port = server.port
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_probes_are_served_from_the_lease_thread() -> None:
    server = ProbeServer("127.0.0.1:0", Health())
    async with LeaseThread() as thread:
        await thread.call(server.start)
        assert (await get(server.port, "/healthz")).status == 200
        await thread.call(server.stop)


# TLS


def write_pair(directory: Path, authority: Authority, name: str) -> None:
    pair = authority.sign(name, hosts=["127.0.0.1"])
    for file, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (directory / f"new-{file}").write_bytes(content)
        os.replace(directory / f"new-{file}", directory / file)


async def test_a_certificate_that_is_renewed_is_used_for_new_connections(tmp_path: Path) -> None:
    time, authority = [0.0], Authority("test-ca")
    write_pair(tmp_path, authority, "one")
    tls = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key", clock=lambda: time[0])
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())

    def seen(port: int) -> Any:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            trusting.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            return dict(part[0] for part in (secure.getpeercert() or {})["subject"])["commonName"]  # type: ignore[misc]

    async with serving(tls=tls) as server:
        assert (await get(server.port, "/healthz", tls=trusting)).text == "ok"
        assert await asyncio.to_thread(seen, server.port) == "one"

        (tmp_path / "tls.crt").write_bytes(b"half a certif")
        time[0] = 20.0
        assert await asyncio.to_thread(seen, server.port) == "one"

        write_pair(tmp_path, authority, "two")
        time[0] = 40.0
        await asyncio.to_thread(seen, server.port)
        assert await asyncio.to_thread(seen, server.port) == "two"


async def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^the certificate of the probes could not be loaded from .*tls\.crt"):
        await ProbeServer("127.0.0.1:0", Health(), tls=TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")).start()


class Doors(AccessReviews):
    """Decides by the token alone, and records what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def authorize(self, authorization: str, path: str) -> AccessDecision:
        self.asked.append((authorization, path))
        decisions = {"": AccessDecision(401, "a token"), "Bearer guest": AccessDecision(403, "not you")}
        return decisions.get(authorization, AccessDecision(200))


async def test_metrics_and_histories_need_access_and_probes_do_not() -> None:
    doors, registry = Doors(), CollectorRegistry()
    async with serving(access=doors, registry=registry, why=lambda *_: {"a": ["b"]}) as server:
        paths = ("/metrics", "/debug/why", "/debug/why/a", "/debug/why/a/b", "/debug/why/a/b/c")
        for path in paths:
            nobody = await get(server.port, path)
            assert (nobody.status, nobody.text) == (401, "a token\n")
            assert nobody.headers["www-authenticate"] == "Bearer"
            guest = await get(server.port, path, Authorization="Bearer guest")
            assert (guest.status, guest.text) == (403, "not you\n")
            assert "www-authenticate" not in guest.headers
            assert (await get(server.port, path, Authorization="Bearer admin")).status == 200
        for path in ("/healthz", "/readyz", "/readyz/ping"):
            assert (await get(server.port, path)).status == 200
    assert doors.asked == [(token, path) for path in paths for token in ("", "Bearer guest", "Bearer admin")]


async def test_a_certificate_that_cannot_be_reloaded_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = [0.0]
    write_pair(tmp_path, Authority("test-ca"), "one")
    tls = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key", clock=lambda: time[0])
    tls.context()
    tls.refresh()
    (tmp_path / "tls.crt").unlink()
    for time[0] in (9.0, 10.0, 19.0):
        tls.refresh()
    (record,) = [record for record in caplog.records if record.name == "konverge.manager"]
    assert record.getMessage() == "certificate reload failed"
    assert "tls.crt" in vars(record)["reason"]


# Health without a server


def test_two_checks_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^a check named 'cache' already exists$"):
        Health(Check("cache", str), Check("cache", str))


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a"])
def test_a_name_that_cannot_be_part_of_a_url_is_rejected(name: str) -> None:
    words = "the name of a check is part of a URL: letters, digits, '-', '_' and '.', got "
    with pytest.raises(ValueError, match=f"^{re.escape(words + repr(name))}$"):
        Check(name, str)


def test_a_long_reason_is_truncated() -> None:
    (_, result) = Health(Check("a", lambda: "x" * 10_000)).ready().results
    assert result.reason == "x" * 2000
    (_, result) = Health(Check("a", lambda: " a\n b ")).ready().results
    assert result.reason == "a b"
