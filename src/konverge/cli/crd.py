"""`konverge crd` and `konverge sample`: CRDs of types, as `kubectl apply -f -` takes them."""

from __future__ import annotations

import click

from konverge.cli.sample import WebApp
from konverge.cli.targets import load_operator
from konverge.schema import crd_for, to_yaml

__all__ = ["crd", "sample"]


@click.command()
def sample() -> None:
    """Print the CRD of the sample type WebApp.

    Example: konverge sample | kubectl apply -f -
    """
    click.echo(to_yaml(crd_for(WebApp)), nl=False)


@click.command()
@click.argument("target")
def crd(target: str) -> None:
    """Print the CRDs of an operator's kinds.

    Example: konverge crd operators/webapp | kubectl apply -f -
    """
    click.echo(to_yaml(*load_operator(target).crds()), nl=False)
