"""Check that an API server answers, without retries: an interactive command must not wait as long as an operator."""

from __future__ import annotations

import asyncio

import click

from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.errors import TransportError

__all__ = ["check_server"]

_TIMEOUT = 4.0


async def check_server(config: ClientConfig, *, timeout: float = _TIMEOUT) -> None:
    """Run discovery against the API server once.

    Raises: click.ClickException with its address if it does not answer within `timeout` seconds; ApiError if it rejects
    the request.
    """
    try:
        async with asyncio.timeout(timeout), Client.connect(config, retry=RetryPolicy(attempts=1)) as client:
            await client.discovery.refresh()
    except (TransportError, TimeoutError) as error:
        reason = str(error) or f"no response within {timeout:g} s"
        raise click.ClickException(f"the API server {config.server} does not answer: {reason}") from error
