"""The commands `konverge crd` and `konverge sample`: print CRDs as YAML for `kubectl apply -f -`."""

from __future__ import annotations

import click

from konverge.cli.targets import load_operator

__all__ = ["crd", "sample"]


@click.command()
def sample() -> None:
    """Print the CRD of the sample kind WebApp.

    Example: konverge sample | kubectl apply -f -
    """
    # Imported here because the other commands do not need these modules.
    from konverge.cli.sample import WebApp
    from konverge.schema import crd_for, to_yaml

    click.echo(to_yaml(crd_for(WebApp)), nl=False)


@click.command()
@click.argument("target")
def crd(target: str) -> None:
    """Print the CRDs of an operator's kinds.

    TARGET is a package, file or module that defines `operator`, or TARGET:name if the operator has another name.

    A version that needs a conversion webhook is not served; `konverge manifests` installs the webhook and serves it.

    Example: konverge crd konverge_operators.webapp | kubectl apply -f -
    """
    from konverge.schema import to_yaml

    operator = load_operator(target)
    try:
        text = to_yaml(*operator.crds())
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{target}: {error}") from error
    if not text:
        click.echo(f"{operator.name} defines no kinds, so it has no CRDs", err=True)
    click.echo(text, nl=False)
