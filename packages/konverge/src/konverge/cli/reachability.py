"""Whether an API server answers, asked once: a command that somebody waits for is not as patient as an operator."""

from __future__ import annotations

import asyncio

import click

from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.errors import TransportError

__all__ = ["check_answers"]

_PATIENCE = 4.0


async def check_answers(config: ClientConfig, *, patience: float = _PATIENCE) -> None:
    """Ask the API server what it serves.

    Raises: click.ClickException with its address when it does not answer within `patience` seconds, and what it answers
    when that is a refusal.
    """
    try:
        async with asyncio.timeout(patience), Client.connect(config, retry=RetryPolicy(attempts=1)) as client:
            await client.discovery.refresh()
    except (TransportError, TimeoutError) as error:
        reason = str(error) or f"nothing came within {patience:g} s"
        raise click.ClickException(f"the API server {config.server} does not answer: {reason}") from error
