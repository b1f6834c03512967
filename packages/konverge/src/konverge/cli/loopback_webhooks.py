"""The webhooks of an operator, answered by this process, for an API server on this machine."""

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

__all__ = ["is_loopback", "loopback_hooks"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LIFETIME = timedelta(days=1)
_PAUSE = 0.1


def is_loopback(url: str) -> bool:
    """Say whether a server is reached on this machine itself; it may still live in a container of its own."""
    return urlsplit(url).hostname in _LOOPBACK


@asynccontextmanager
async def loopback_hooks(
    client: Client, operator: Operator, probe: Unstructured | None, *, name: str, patience: float = 15.0
) -> AsyncGenerator[Address | None]:
    """Serve webhooks while the block runs, and tell the API server of them; None when it cannot call this process.

    Whether it can is tried with `probe`, an object that all webhooks are asked about; it is not stored. Without one it
    is taken for granted. The configurations are called `name`, and are gone after the block. Certificates are in
    memory only.
    """
    from konverge.webhooks import Address, CertificatePair, Webhooks, WebhookServer, configurations_for
    from konverge.webhooks.authorities import issue, make_authority

    now = datetime.now(UTC)
    signer = make_authority(name, now=now, lifetime=_LIFETIME)
    certified = issue(signer, _LOOPBACK[:2], now=now, lifetime=_LIFETIME)
    server = WebhookServer(Webhooks(*operator.webhooks), host="127.0.0.1", port=0)
    server.swap(CertificatePair(certified.certificate, certified.key))
    async with server, AsyncExitStack() as configured:
        address = Address(url=f"https://127.0.0.1:{server.port}", ca_bundle=signer.certificate)
        for one in configurations_for(operator.webhooks, address, name=name):
            configured.push_async_callback(client.delete, type(one), name, missing_ok=True)
            await client.apply(one, force=True)
        if probe is None or await _answers(client, server, probe, patience):
            yield address
        else:
            await configured.aclose()
            yield None


async def _answers(client: Client, server: WebhookServer, probe: Unstructured, patience: float) -> bool:
    """Try until each webhook of admission was asked; what is configured takes a moment to count."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not _all_asked(server):
                with suppress(KonvergeError):
                    await client.using(dry_run=True).without_warnings().create(probe)
                await asyncio.sleep(_PAUSE)
            return True
    return False


def _all_asked(server: WebhookServer) -> bool:
    """Say whether everybody who is asked about a new object was asked."""
    from konverge.webhooks import AdmissionWebhook

    hooks = server.webhooks.hooks
    paths = {hook.path for hook in hooks if isinstance(hook, AdmissionWebhook) and "CREATE" in hook.operations}
    return all(one.allowed + one.denied for one in server.webhooks.stats().endpoints if one.path in paths)
