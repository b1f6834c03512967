"""The command `konverge why`: ask a running operator why an object was reconciled."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import click

from konverge.cli.options import host, option
from konverge.cli.targets import short_repr
from konverge.objects import Key

__all__ = ["why"]

_CONNECT_TIMEOUT = 5.0
_RESPONSE_TIMEOUT = 10.0


def _address(text: str) -> tuple[str, int]:
    place, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or not 0 < int(port[:6]) <= 65535:
        raise click.BadParameter(f"expected HOST:PORT, such as 127.0.0.1:8080, got {short_repr(text)}")
    return host(place) or "127.0.0.1", int(port)


def _controller(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise click.BadParameter(
            f"{short_repr(text)} is not a valid controller name: use its name or kind, such as WebApp"
        )
    return text.strip().lower()


def _key(text: str) -> Key:
    try:
        if not text.isprintable() or text != text.strip():
            raise ValueError(
                f"{short_repr(text)} is not a valid key: write 'namespace/name', or 'name' for a cluster-scoped object"
            )
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
    help="Address of the operator's metrics; use kubectl port-forward for a remote one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why(controller: str, key: Key, address: tuple[str, int], as_json: bool) -> None:
    """Show why an object was last reconciled: the trigger, the reads and writes, and the result.

    CONTROLLER is the name of a controller or its kind. KEY is namespace/name, or name for a cluster-scoped object.

    Example: konverge why WebApp shop/web
    """
    path = "/".join(quote(part, safe="") for part in (controller, key.namespace, key.name) if part)
    entries = asyncio.run(_fetch(address, f"/debug/why/{path}"))
    if as_json:
        click.echo(json.dumps(entries, indent=2))
        return
    from konverge.reconcile.journal_texts import render

    click.echo(render(entries), nl=False)


async def _fetch(address: tuple[str, int], path: str) -> list[dict[str, Any]]:
    place = f"{address[0]}:{address[1]}"
    try:
        head, body = await _get(address, path)
    except (OSError, TimeoutError, UnicodeError) as error:  # UnicodeError: a host name with a label that is too long
        reason = str(error) or "timed out"
        raise click.ClickException(
            f"no operator answers at {place}: {reason} (check that it runs, and --address)"
        ) from error
    status = head.split(b"\r\n", 1)[0].decode(errors="replace")
    if not status.startswith("HTTP/1."):
        raise _not_an_operator(place)
    if " 200 " not in f"{status} ":
        message = " ".join(body.decode(errors="replace").split())[:300]
        raise click.ClickException(f"{place}{path}: {message or status}")
    return _entries(body, place)


def _entries(body: bytes, place: str) -> list[dict[str, Any]]:
    try:
        entries = json.loads(body)
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _not_an_operator(place)
    return entries


def _not_an_operator(place: str) -> click.ClickException:
    return click.ClickException(f"the server at {place} is not a konverge operator (--address is that of its metrics)")


async def _get(address: tuple[str, int], path: str) -> tuple[bytes, bytes]:
    name, port = address[0].strip("[]"), address[1]
    async with asyncio.timeout(_CONNECT_TIMEOUT):
        reader, writer = await asyncio.open_connection(name, port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address[0]}:{port}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(_RESPONSE_TIMEOUT):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return head, body
