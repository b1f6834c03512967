"""`konverge why`: why an object was reconciled, asked of the running operator."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import click

__all__ = ["why"]


@click.command(context_settings={"auto_envvar_prefix": "KONVERGE", "show_default": True})
@click.argument("controller")
@click.argument("key")
@click.option("--address", default="127.0.0.1:8080", help="Where the operator answers; try kubectl port-forward.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def why(controller: str, key: str, address: str, as_json: bool) -> None:
    """Say why an object was last reconciled: what woke it, what was read and written, and how it ended.

    CONTROLLER is a controller's name or its kind, KEY is namespace/name, or name for what has no namespace.

    Example: konverge why WebApp shop/web
    """
    found = asyncio.run(_ask(address, f"/debug/why/{quote(controller.lower())}/{quote(key)}"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    from konverge.reconcile.journaltexts import render

    click.echo(render(found), nl=False)


async def _ask(address: str, path: str) -> list[dict[str, Any]]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--address is host:port, got {address!r}")
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host or "127.0.0.1", int(port)), 5)
    except (OSError, TimeoutError) as error:
        raise click.ClickException(f"no operator answers at {address}: {error} (is it running? --address)") from error
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise click.ClickException(f"{address}{path}: {body.decode(errors='replace').strip() or head.decode()}")
    found: list[dict[str, Any]] = json.loads(body)
    return found
