"""`konverge sample`: the CRD of the sample type, as `kubectl apply -f -` takes it."""

from __future__ import annotations

import click

from konverge.cli.sample import WebApp
from konverge.schema import crd_for, to_yaml

__all__ = ["sample"]


@click.command()
def sample() -> None:
    """Print the CRD of the sample type WebApp.

    Example: konverge sample | kubectl apply -f -
    """
    click.echo(to_yaml(crd_for(WebApp)), nl=False)
