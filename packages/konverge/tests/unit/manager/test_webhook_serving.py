"""The stages of a process that serve webhooks: the certificate, then the server."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gadgets import world_with_gadgets
from konverge import Client, Key, NotFound
from konverge.k8s.core.v1 import Secret
from konverge.manager.background import background
from konverge.manager.webhook_serving import WebhookServing, WebhookStages
from konverge.testing.faults import status_response
from konverge.webhooks import Webhooks, service_hosts
from konverge.webhooks.authorities import read_key_pair
from webhook_certificates import authority, pair_of, trusting

SECRET = Key("default", "webhook-certificate")
SERVICE = Key("default", "webhooks")


def managed(**options: object) -> WebhookServing:
    return WebhookServing(**{"hooks": Webhooks(), "secret": SECRET, "service": SERVICE, **options})  # type: ignore[arg-type]


async def hosts_in(client: Client) -> frozenset[str]:
    data = (await client.get(Secret, SECRET)).data
    pair = read_key_pair(data["tls.crt"], data["tls.key"])
    assert pair is not None
    return pair.hosts


@pytest.mark.parametrize(
    "options",
    [{}, {"secret": SECRET}, {"service": SERVICE}, {"hosts": ("web.example.com",)}],
)
def test_a_certificate_must_come_from_somewhere(options: dict[str, object]) -> None:
    words = "webhooks need a certificate: pass files (certificate and key), or a secret and a service to manage one"
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        WebhookServing(hooks=Webhooks(), **options)  # type: ignore[arg-type]


async def test_a_managed_certificate_is_created_for_the_names_of_its_service() -> None:
    world = await world_with_gadgets()
    stages = WebhookStages(managed(), asyncio.Event())
    assert stages.not_ready_reason == "not started"
    async with stages.certificates(world.client, None):
        assert stages.not_ready_reason == ""
        assert stages.server is not None
        assert stages.server.pair is not None
        assert await hosts_in(world.client) == set(service_hosts("webhooks", "default"))


@pytest.mark.parametrize(
    ("options", "hosts"),
    [
        ({"hosts": ("web.example.com",)}, {"web.example.com"}),
        ({"service": None, "hosts": ("web.example.com",)}, {"web.example.com"}),
    ],
)
async def test_the_hosts_of_a_certificate_can_be_set(options: dict[str, object], hosts: set[str]) -> None:
    world = await world_with_gadgets()
    async with WebhookStages(managed(**options), asyncio.Event()).certificates(world.client, None):
        assert await hosts_in(world.client) == hosts


async def test_a_start_waits_for_its_certificate_and_reports_why(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()
    stages, opened = WebhookStages(managed(), asyncio.Event()), asyncio.Event()
    client = world.operator_client()

    async def start() -> None:
        async with stages.certificates(client, None):
            opened.set()
            await asyncio.sleep(1_000)

    down = status_response(403, reason="Forbidden", message="secrets is forbidden")
    async with background(start()):
        with world.transport.script.active(lambda request: "/secrets" in request.path, down):
            await asyncio.sleep(9)
            assert not opened.is_set()
            assert stages.not_ready_reason.startswith("no certificate: ")
            assert "secrets is forbidden" in stages.not_ready_reason
            reads = [one for one in world.transport.script.requests() if "/secrets" in one.path]
            assert 4 <= len(reads) <= 6, "one each two seconds"
        await asyncio.sleep(2.1)
        assert opened.is_set()
        assert stages.not_ready_reason == ""
    warnings = {record.getMessage(): vars(record) for record in caplog.records if record.name == "konverge.manager"}
    assert "secrets is forbidden" in warnings["waiting for webhook certificate"]["reason"]


async def test_a_process_that_stops_before_it_has_a_certificate_serves_nothing() -> None:
    world = await world_with_gadgets()
    stopping = asyncio.Event()
    stages = WebhookStages(managed(), stopping)
    client = world.operator_client()
    with world.transport.script.active(lambda request: "/secrets" in request.path, status_response(500)):
        asyncio.get_running_loop().call_later(5, stopping.set)
        async with stages.certificates(client, None), stages.serve():
            assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
            assert stages.not_ready_reason.startswith("no certificate: ")
            assert stages.server is not None
            assert stages.server.pair is None


async def test_only_the_leader_renews_a_managed_certificate() -> None:
    """Seen by what it does when the Secret is lost: the leader creates it again."""
    world = await world_with_gadgets()
    leading = asyncio.Event()
    async with WebhookStages(managed(), asyncio.Event()).certificates(world.client, leading):
        await world.client.delete(Secret, SECRET)
        await asyncio.sleep(300)
        with pytest.raises(NotFound):
            await world.client.get(Secret, SECRET)
        leading.set()
        await asyncio.sleep(1)
        await world.client.get(Secret, SECRET)


async def test_without_an_election_every_process_renews() -> None:
    world = await world_with_gadgets()
    async with WebhookStages(managed(), asyncio.Event()).certificates(world.client, None):
        await world.client.delete(Secret, SECRET)
        await asyncio.sleep(100)
        await world.client.get(Secret, SECRET)


@pytest.mark.real_time
async def test_webhooks_are_served_with_the_certificate_of_files(tmp_path: Path) -> None:
    signer = authority()
    pair = pair_of(signer)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    serving = WebhookServing(hooks=Webhooks(), host="127.0.0.1", port=0, certificate=certificate, key=key)
    stages = WebhookStages(serving, asyncio.Event())
    world = await world_with_gadgets()
    async with stages.certificates(world.client, None), stages.serve():
        assert stages.server is not None
        port = stages.server.port
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(signer), server_hostname="localhost")
        writer.close()
        await writer.wait_closed()
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)
