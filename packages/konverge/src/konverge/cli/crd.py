"""`konverge crd` and `konverge sample`: CRDs of types, as `kubectl apply -f -` takes them."""

from __future__ import annotations

import click

from konverge.cli.targets import load_operator

__all__ = ["crd", "sample"]


@click.command()
def sample() -> None:
    """Print the CRD of the sample type WebApp.

    Example: konverge sample | kubectl apply -f -
    """
    # Loaded here: the other commands need none of it.
    from konverge.cli.sample import WebApp
    from konverge.schema import crd_for, to_yaml

    click.echo(to_yaml(crd_for(WebApp)), nl=False)


@click.command()
@click.argument("target")
def crd(target: str) -> None:
    """Print the CRDs of an operator's kinds.

    TARGET is a package, file or module with an `operator` in it, or TARGET:name for one that is called otherwise.

    Example: konverge crd konverge_operators.webapp | kubectl apply -f -
    """
    from konverge.schema import to_yaml

    operator = load_operator(target)
    try:
        text = to_yaml(*operator.crds())
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{target}: {error}") from error
    if not text:
        click.echo(f"{operator.name} brings no kinds of its own: it has no CRDs", err=True)
    click.echo(text, nl=False)
