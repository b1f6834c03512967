"""The command line: `konverge --help` explains each command with an example."""

from __future__ import annotations

import click

from konverge.cli.commands import CommandGroup

__all__ = ["main"]


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="konverge")
def main() -> None:
    """Build and run Kubernetes operators in Python."""
