"""`konverge why`: why an object was reconciled, asked of the running operator."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import click

from konverge.cli.options import host, option
from konverge.cli.targets import shown
from konverge.objects import Key

__all__ = ["why"]

_CONNECT = 5.0
_ANSWER = 10.0


def _address(text: str) -> tuple[str, int]:
    place, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or not 0 < int(port[:6]) <= 65535:
        raise click.BadParameter(f"write HOST:PORT, as in 127.0.0.1:8080, not {shown(text)}")
    return host(place) or "127.0.0.1", int(port)


def _controller(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise click.BadParameter(f"{shown(text)} is no name of a controller: write its name or kind, as in WebApp")
    return text.strip().lower()


def _key(text: str) -> Key:
    try:
        if not text.isprintable() or text != text.strip():
            raise ValueError(f"{shown(text)} is no key: write 'namespace/name', or 'name' for a cluster-scoped object")
        return Key.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(context_settings={"show_default": True})
@click.argument("controller", type=_controller)
@click.argument("key", type=_key)
@option(
    "--address",
    type=_address,
    default="127.0.0.1:8080",
    metavar="HOST:PORT",
    help="Where the operator answers; try kubectl port-forward.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def why(controller: str, key: Key, address: tuple[str, int], as_json: bool) -> None:
    """Say why an object was last reconciled: what woke it, what was read and written, and how it ended.

    CONTROLLER is a controller's name or its kind, KEY is namespace/name, or name for what has no namespace.

    Example: konverge why WebApp shop/web
    """
    path = "/".join(quote(part, safe="") for part in (controller, key.namespace, key.name) if part)
    found = asyncio.run(_ask(address, f"/debug/why/{path}"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    from konverge.reconcile.journal_texts import render

    click.echo(render(found), nl=False)


async def _ask(address: tuple[str, int], path: str) -> list[dict[str, Any]]:
    place = f"{address[0]}:{address[1]}"
    try:
        head, body = await _exchange(address, path)
    except (OSError, TimeoutError, UnicodeError) as error:  # the last is a host with a part that is too long
        reason = str(error) or "it takes too long"
        raise click.ClickException(f"no operator answers at {place}: {reason} (is it running? --address)") from error
    status = head.split(b"\r\n", 1)[0].decode(errors="replace")
    if not status.startswith("HTTP/1."):
        raise click.ClickException(f"what answers at {place} is no operator (--address is that of its metrics)")
    if " 200 " not in f"{status} ":
        told = " ".join(body.decode(errors="replace").split())[:300]
        raise click.ClickException(f"{place}{path}: {told or status}")
    return _entries(body, place)


def _entries(body: bytes, place: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise click.ClickException(f"what answers at {place} is no operator (--address is that of its metrics)")
    return found


async def _exchange(address: tuple[str, int], path: str) -> tuple[bytes, bytes]:
    name, port = address[0].strip("[]"), address[1]
    async with asyncio.timeout(_CONNECT):
        reader, writer = await asyncio.open_connection(name, port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address[0]}:{port}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(_ANSWER):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return head, body
