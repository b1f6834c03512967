"""The webhooks of an operator, served by this process for an API server on the same machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.manager import Operator
from konverge.objects import Unstructured

if TYPE_CHECKING:
    from konverge.webhooks import Address, WebhookServer

__all__ = ["is_loopback", "serve_loopback_webhooks"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LIFETIME = timedelta(days=1)
_RETRY_DELAY = 0.1
"""Seconds between two probes. Nothing tells when a configuration has taken effect: the API server reads it from a watch
of its own, and reports nothing in its status."""


def is_loopback(url: str) -> bool:
    """Report whether a server has a loopback address. It may still run in a container."""
    return urlsplit(url).hostname in _LOOPBACK


@asynccontextmanager
async def serve_loopback_webhooks(
    client: Client, operator: Operator, probe: Unstructured | None, *, name: str, timeout: float = 15.0
) -> AsyncGenerator[Address | None]:
    """Serve and register webhooks during the block; return None if the API server cannot call this process.

    To find out, the function creates `probe`, an object that all webhooks review, with a dry run. Without a probe it
    assumes that the server can. The configurations are named `name` and deleted after the block. Certificates are kept
    in memory only.
    """
    from konverge.webhooks import Address, CertificatePair, Webhooks, WebhookServer, configurations_for
    from konverge.webhooks.authorities import make_authority, sign_serving

    now = datetime.now(UTC)
    signer = make_authority(name, now=now, lifetime=_LIFETIME)
    leaf = sign_serving(signer, _LOOPBACK[:2], now=now, lifetime=_LIFETIME)
    server = WebhookServer(Webhooks(*operator.webhooks), host="127.0.0.1", port=0)
    server.set_certificate(CertificatePair(leaf.certificate, leaf.key))
    async with server, AsyncExitStack() as stack:
        address = Address(url=f"https://127.0.0.1:{server.port}", ca_bundle=signer.certificate)
        for configuration in configurations_for(operator.webhooks, address, name=name):
            stack.push_async_callback(client.delete, type(configuration), name, missing_ok=True)
            await client.apply(configuration, force=True)
        if probe is None or await _is_called(client, server, probe, timeout):
            yield address
        else:
            await stack.aclose()
            yield None


async def _is_called(client: Client, server: WebhookServer, probe: Unstructured, timeout: float) -> bool:
    """Report whether the server calls every admission webhook; retry, because a configuration takes effect late."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while not _all_called(server):
                with suppress(KonvergeError):
                    await client.using(dry_run=True).without_warnings().create(probe)
                await asyncio.sleep(_RETRY_DELAY)
            return True
    return False


def _all_called(server: WebhookServer) -> bool:
    """Report whether every admission webhook for CREATE was called."""
    from konverge.webhooks import AdmissionWebhook

    hooks = server.webhooks.hooks
    paths = {hook.path for hook in hooks if isinstance(hook, AdmissionWebhook) and "CREATE" in hook.operations}
    endpoints = [endpoint for endpoint in server.webhooks.stats().endpoints if endpoint.path in paths]
    return all(endpoint.allowed + endpoint.denied for endpoint in endpoints)
