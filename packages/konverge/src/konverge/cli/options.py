"""Command line options: their values, and the environment variables that can set them.

Each function here parses one value. click adds the names of the option and of the environment variable to the error,
and the error says what to write.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge.cli.targets import short_repr
from konverge.objects.names import dns_label_errors, dns_subdomain_errors

__all__ = [
    "PORT",
    "cidr",
    "folder",
    "host",
    "image",
    "lease_seconds",
    "namespace",
    "object_name",
    "option",
    "pinned_image",
    "seconds",
]

F = TypeVar("F", bound=Callable[..., Any])

PORT = click.IntRange(0, 65535)
_DAY = 86400.0
# An optional registry with a port, a path, a tag and a digest: what container runtimes accept, and nothing else.
_IMAGE = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
)
_MAX_IMAGE_LENGTH = 512
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z")


def option(*flags: str, variable: str = "", **attributes: Any) -> Callable[[F], F]:
    """Declare an option that an environment variable can set too: --lease-name is KONVERGE_LEASE_NAME."""
    long = next(flag for flag in flags if flag.startswith("--")).partition("/")[0]
    name = variable or f"KONVERGE_{long[2:].replace('-', '_').upper()}"
    return click.option(*flags, envvar=name, show_envvar=True, **attributes)


def seconds(text: str | float) -> float:
    """Parse a duration in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _DAY:
        raise click.BadParameter(f"expected a number of seconds from 0 to {_DAY:g}, got {short_repr(str(text))}")
    return value


def lease_seconds(text: str | float) -> float:
    """Parse a lease duration. The Lease object holds whole seconds only."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= _DAY or value != int(value):
        raise click.BadParameter(f"expected a whole number of seconds from 1 to {_DAY:g}, got {short_repr(str(text))}")
    return value


def namespace(text: str) -> str:
    """Parse the name of a namespace."""
    if dns_label_errors(text):
        raise click.BadParameter(
            f"{short_repr(text)} is not a valid namespace name:"
            " use lower-case letters, digits and '-', at most 63 characters"
        )
    return text


def object_name(text: str) -> str:
    """Parse the name of an object."""
    if dns_subdomain_errors(text):
        raise click.BadParameter(
            f"{short_repr(text)} is not a valid object name:"
            " use lower-case letters, digits, '-' and '.', at most 253 characters"
        )
    return text


def host(text: str) -> str:
    """Parse an address to listen on, and put an IPv6 address in brackets."""
    if not text:
        return ""
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        if dns_subdomain_errors(text.lower()):
            raise click.BadParameter(f"{short_repr(text)} is not a valid IP address or host name") from None
        return text
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def image(text: str) -> str:
    """Parse the name of a container image."""
    if len(text) > _MAX_IMAGE_LENGTH or not _IMAGE.fullmatch(text):
        raise click.BadParameter(f"{short_repr(text)} is not a valid image: use [HOST[:PORT]/]NAME[:TAG][@DIGEST]")
    return text


def pinned_image(text: str) -> str:
    """Parse the name of a container image with its digest."""
    if not _DIGEST.search(image(text)):
        raise click.BadParameter(
            f"{short_repr(text)} is not pinned: use NAME@sha256:DIGEST, with 64 hexadecimal digits"
        )
    return text


def cidr(text: str) -> str:
    """Parse a block of addresses."""
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise click.BadParameter(
            f"{short_repr(text)} is not a block of addresses such as 10.0.0.0/16: {error}"
        ) from None


def folder(text: str | os.PathLike[str]) -> Path:
    """Parse the path of a folder to write. It need not exist."""
    path = os.fspath(text)
    if not path.strip():
        raise click.BadParameter("the folder is empty: use . for the current folder")
    if os.path.exists(path) and not os.path.isdir(path):
        raise click.BadParameter(f"{short_repr(path)} exists and is not a folder")
    return Path(path)
