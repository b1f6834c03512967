"""Options: what may be written for one, and the environment variable that can be set instead.

A function of this file reads one value. What it refuses is told with the name of the option, the name of the variable,
and what to write.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge.cli.targets import shown
from konverge.objects.names import dns_label_errors, dns_subdomain_errors

__all__ = ["PORT", "folder", "host", "image", "lease_seconds", "namespace", "object_name", "option", "seconds"]

F = TypeVar("F", bound=Callable[..., Any])

PORT = click.IntRange(0, 65535)
_DAY = 86400.0
# A registry with a port, a path, a tag, a digest: what container runtimes read, with no room for anything else.
_IMAGE = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
)
_LONGEST_IMAGE = 512


def option(*flags: str, variable: str = "", **attributes: Any) -> Callable[[F], F]:
    """Declare an option that can be set by an environment variable too: --lease-name by KONVERGE_LEASE_NAME."""
    long = next(flag for flag in flags if flag.startswith("--")).partition("/")[0]
    name = variable or f"KONVERGE_{long[2:].replace('-', '_').upper()}"
    return click.option(*flags, envvar=name, show_envvar=True, **attributes)


def seconds(text: str | float) -> float:
    """Read a time that something may take."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _DAY:
        raise click.BadParameter(f"write a number of seconds, 0 to {_DAY:g}, not {shown(str(text))}")
    return value


def lease_seconds(text: str | float) -> float:
    """Read how long a lease lasts; the Lease object has no room for parts of a second."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= _DAY or value != int(value):
        raise click.BadParameter(f"write a whole number of seconds, 1 to {_DAY:g}, not {shown(str(text))}")
    return value


def namespace(text: str) -> str:
    """Read the name of a namespace."""
    if dns_label_errors(text):
        raise click.BadParameter(
            f"{shown(text)} is no name of a namespace: write lower-case letters, digits and '-', at most 63"
        )
    return text


def object_name(text: str) -> str:
    """Read the name of an object of most kinds."""
    if dns_subdomain_errors(text):
        raise click.BadParameter(
            f"{shown(text)} is no name of an object: write lower-case letters, digits, '-' and '.', at most 253"
        )
    return text


def host(text: str) -> str:
    """Read an address of this machine to listen on; one of IPv6 gets the brackets that a port needs."""
    if not text:
        return ""
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        if dns_subdomain_errors(text.lower()):
            raise click.BadParameter(f"{shown(text)} is neither an IP address nor a host name") from None
        return text
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def image(text: str) -> str:
    """Read the name of a container image."""
    if len(text) > _LONGEST_IMAGE or not _IMAGE.fullmatch(text):
        raise click.BadParameter(f"{shown(text)} is no name of an image: write [HOST[:PORT]/]NAME[:TAG][@DIGEST]")
    return text


def folder(text: str | os.PathLike[str]) -> Path:
    """Read the path of a folder to write, which need not be there."""
    path = os.fspath(text)
    if not path.strip():
        raise click.BadParameter("an empty text names no folder (write . for this one)")
    if os.path.exists(path) and not os.path.isdir(path):
        raise click.BadParameter(f"{shown(path)} is there, and no folder")
    return Path(path)
