"""The command `konverge models`: generate typed classes from existing CRDs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from konverge.errors import DecodeError

__all__ = ["models"]

_STDIN = "-"
_MAX_BYTES = 64 * 1024 * 1024


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True), help="File to write instead of printing."
)
def models(file: str, output: str | None) -> None:
    """Print typed classes for the CRDs in FILE ('-' reads standard input).

    FILE is YAML or JSON, as published with an operator or printed by `kubectl get crd -o yaml`. Documents of other
    kinds are ignored.

    Example: konverge models certificates.yaml -o certificates.py
    """
    # Imported here because the other commands do not need this module.
    from konverge.codegen import models_from_crds

    try:
        source = models_from_crds(_read(file), source=_name(file))
        if output is None:
            click.echo(source, nl=False)
        else:
            Path(output).write_text(source, encoding="utf-8")
    except (DecodeError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _read(file: str) -> str:
    if file == _STDIN:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1)
    else:
        with Path(file).open("rb") as handle:
            data = handle.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise DecodeError(f"{_name(file)} is too large for a file of CRDs: more than {_MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{_name(file)} is not valid UTF-8, at byte {error.start}") from error


def _name(file: str) -> str:
    return "standard input" if file == _STDIN else Path(file).name
