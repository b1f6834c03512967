"""`konverge demo`: what is built so far, on the embedded API server."""

from __future__ import annotations

import asyncio

import click

__all__ = ["demo"]


@click.command()
def demo() -> None:
    """Show what konverge does so far, step by step, on the embedded API server.

    No cluster is needed and nothing is left behind. A step that does not hold ends it with exit code 1.

    Example: konverge demo
    """
    # Loaded here: the other commands need no API server.
    from konverge.cli.story import Story

    asyncio.run(Story().tell())
