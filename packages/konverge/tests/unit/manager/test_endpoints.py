"""Where metrics are served, and to whom: protected unless only this machine can connect."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry

from konverge.certificates import Authority
from konverge.client import Client, InProcessTransport
from konverge.manager import Endpoints
from konverge.manager.health import Check, Health
from konverge.manager.probes import ProbeServer
from konverge.manager.self_signed import SelfSignedCertificate
from konverge.wire.messages import BufferedResponse, Request, Response
from probe_requests import get

PROTECTED = [":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.1:8080", "operator.example:8080"]
OPEN = ["127.0.0.1:8080", "127.1.2.3:8080", "[::1]:8080", "localhost:8080"]


def anything() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.mark.parametrize("address", PROTECTED)
def test_an_address_that_others_can_reach_is_protected(address: str) -> None:
    assert Endpoints(address).is_protected
    assert not Endpoints(address, protected=False).is_protected


@pytest.mark.parametrize("address", OPEN)
def test_a_loopback_address_is_open(address: str) -> None:
    assert not Endpoints(address).is_protected
    assert Endpoints(address, protected=True).is_protected


async def refuse(request: Request) -> Response:
    return BufferedResponse(403, b"")


@asynccontextmanager
async def serving(endpoints: Endpoints) -> AsyncGenerator[list[ProbeServer]]:
    def why(controller: str, key: Any) -> list[Any]:
        return []

    servers = endpoints.servers(
        Health(Check("cache", str)),
        registry=CollectorRegistry(),
        why=why,
        connect=lambda: Client(InProcessTransport(refuse)),
    )
    for server in servers:
        await server.start()
    try:
        yield servers
    finally:
        for server in servers:
            await server.stop()


@pytest.mark.real_time
async def test_protected_metrics_speak_https_and_need_a_token_and_probes_do_not() -> None:
    async with serving(Endpoints("0.0.0.0:0", probes="127.0.0.1:0")) as (main, probes):
        for path in ("/metrics", "/debug/why"):
            assert (await get(main.port, path, tls=anything())).status == 401
            with pytest.raises((OSError, ssl.SSLError)):
                await get(main.port, path)
            assert (await get(probes.port, path)).status == 404
        assert (await get(main.port, "/readyz", tls=anything())).text == "ok"
        for path in ("/healthz", "/readyz"):
            assert (await get(probes.port, path)).text == "ok"


@pytest.mark.real_time
async def test_unprotected_metrics_are_plain_and_open() -> None:
    async with serving(Endpoints("0.0.0.0:0", protected=False)) as (main,):
        assert (await get(main.port, "/metrics")).status == 200


def presented(port: int) -> x509.Certificate:
    with socket.create_connection(("127.0.0.1", port)) as plain, anything().wrap_socket(plain) as secure:
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")


@pytest.mark.real_time
async def test_a_self_signed_certificate_is_renewed_before_it_expires() -> None:
    now = [datetime.now(UTC)]
    certificate = SelfSignedCertificate("localhost", clock=lambda: now[0])
    async with ProbeServer("127.0.0.1:0", Health(), tls=certificate) as server:
        first = await asyncio.to_thread(presented, server.port)
        left = first.not_valid_after_utc - now[0]
        assert timedelta(days=364) < left <= timedelta(days=365)
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["localhost"]
        assert first.issuer.rfc4514_string() == "CN=localhost-ca"
        now[0] += timedelta(days=300)
        assert await asyncio.to_thread(presented, server.port) == first
        now[0] = first.not_valid_after_utc - timedelta(days=30)
        assert await asyncio.to_thread(presented, server.port) == first, "a month is left"
        now[0] = first.not_valid_after_utc - timedelta(days=29)
        renewed = await asyncio.to_thread(presented, server.port)
        assert renewed.not_valid_after_utc > first.not_valid_after_utc


@pytest.mark.real_time
async def test_a_certificate_of_files_is_served_with_its_key(tmp_path: Path) -> None:
    authority = Authority("endpoints")
    pair = authority.sign("localhost", hosts=["localhost"])
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    async with serving(Endpoints("127.0.0.1:0", certificate=certificate, key=key)) as (server,):
        assert (await get(server.port, "/healthz", tls=anything())).text == "ok"
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            secure = await asyncio.to_thread(anything().wrap_socket, plain)
            with secure:
                served = secure.getpeercert(binary_form=True)
    assert served == ssl.PEM_cert_to_DER_cert(
        pair.certificate.decode().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    )
