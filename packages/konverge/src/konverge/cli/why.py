"""The command `konverge why`: ask a running operator why an object was reconciled."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

import click

from konverge.cli.dev_address import DEV_KUBECONFIG, read_dev_address
from konverge.cli.options import host, option
from konverge.cli.targets import short_repr
from konverge.listener import is_loopback
from konverge.objects import Key

__all__ = ["why"]

_DEFAULT_ADDRESS = "127.0.0.1:8080"
_CONNECT_TIMEOUT = 5.0
_RESPONSE_TIMEOUT = 10.0
_MAX_TOKEN = 100_000


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
            raise ValueError(f"{short_repr(text)} is not a valid key: write 'namespace/name', or 'name'")
        return Key.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("controller", type=_controller, required=False)
@click.argument("key", type=_key, required=False)
@option(
    "--address",
    type=_address,
    metavar="HOST:PORT",
    help="Address of the operator's metrics, that of a running `konverge dev` or 127.0.0.1:8080 by default; use"
    " kubectl port-forward for a remote one.",
)
@option(
    "--token-file",
    type=click.File(),
    help="File with a token for a protected operator, which is asked with HTTPS; - is the standard input. Its"
    " certificate is not verified, so the address must be loopback: use kubectl port-forward.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why(
    controller: str | None,
    key: Key | None,
    address: tuple[str, int] | None,
    token_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show why an object was last reconciled: the trigger, the reads and writes, and the result.

    CONTROLLER is the name of a controller or its kind. KEY is namespace/name, or name for an object in the default
    namespace or without one. Without KEY, the objects that have a history are listed.

    Example: konverge why WebApp shop/web

    An operator in a cluster: kubectl create token ACCOUNT | konverge why WebApp --address 127.0.0.1:8443 --token-file -
    """
    parts = (controller, *((key.namespace, key.name) if key else ()))
    path = "/".join(["/debug/why", *(quote(part, safe="") for part in parts if part)])
    place = address or _find_address()
    token = _read_token(token_file, place[0]) if token_file else ""
    found = asyncio.run(_fetch(place, path, token, list if key else dict))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif isinstance(found, dict):
        _print_keys(found)
    else:
        from konverge.reconcile.journal_texts import render

        click.echo(render(found), nl=False)


def _print_keys(controllers: dict[str, Any]) -> None:
    for name, keys in controllers.items():
        for key in keys or ["nothing reconciled yet"]:
            click.echo(f"{name}  {key}")
    if not controllers:
        click.echo("this operator has no controllers")


def _read_token(file: TextIO, name: str) -> str:
    """Read a token that is to be sent to a host."""
    if not is_loopback(name):
        raise click.UsageError(f"a token is sent to a loopback address only, not to {name} (use kubectl port-forward)")
    token = file.read(_MAX_TOKEN).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise click.UsageError("--token-file has no token in it")
    return token


def _find_address() -> tuple[str, int]:
    """Return the address of a `konverge dev` that runs here, or of an operator with default options."""
    for file in (*filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep)), DEV_KUBECONFIG):
        found = read_dev_address(Path(file))
        if found:
            return _address(found)
    return _address(_DEFAULT_ADDRESS)


async def _fetch(address: tuple[str, int], path: str, token: str, type_: type[Any]) -> Any:
    place = f"{address[0]}:{address[1]}"
    try:
        head, body = await _get(address, path, token)
    except ssl.SSLError as error:
        raise click.ClickException(f"{place} does not serve HTTPS, as a protected operator does: {error}") from error
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
    return _entries(body, place, type_)


def _entries(body: bytes, place: str, type_: type[Any]) -> Any:
    entries: Any
    try:
        entries = json.loads(body)
    except ValueError:
        raise _not_an_operator(place) from None
    # Histories are lists of objects, and the known keys are lists by controller.
    if not isinstance(entries, type_):
        raise _not_an_operator(place)
    values, inner = (entries.values(), list) if isinstance(entries, dict) else (entries, dict)
    if not all(isinstance(one, inner) for one in values):
        raise _not_an_operator(place)
    return entries


def _not_an_operator(place: str) -> click.ClickException:
    return click.ClickException(
        f"the server at {place} is not a konverge operator (--address is that of its metrics; a protected one needs"
        " --token-file)"
    )


def _unverified() -> ssl.SSLContext:
    """Return a context for a certificate that each pod signs itself; the address is loopback."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _get(address: tuple[str, int], path: str, token: str) -> tuple[bytes, bytes]:
    name, port = address[0].strip("[]"), address[1]
    async with asyncio.timeout(_CONNECT_TIMEOUT):
        reader, writer = await asyncio.open_connection(name, port, ssl=_unverified() if token else None)
    headers = [f"Host: {address[0]}:{port}", "Connection: close"]
    if token:
        headers.append(f"Authorization: Bearer {token}")
    try:
        writer.write("\r\n".join([f"GET {path} HTTP/1.0", *headers, "", ""]).encode())
        async with asyncio.timeout(_RESPONSE_TIMEOUT):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return head, body
