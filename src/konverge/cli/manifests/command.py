"""The command."""

from __future__ import annotations

from pathlib import Path

import click

from konverge.cli.targets import load_operator

__all__ = ["manifests"]


@click.command(context_settings={"auto_envvar_prefix": "KONVERGE", "show_default": True})
@click.argument("target")
@click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path), help="Folder to write; else print.")
@click.option("--namespace", help="Namespace that it runs in; NAME-system unless given.")
@click.option("--image", help="Image of the operator; NAME:0.1.0 unless given.")
@click.option("--replicas", type=click.IntRange(min=1), default=2, help="How many run; one of them leads.")
@click.option("--watch", "namespaces", multiple=True, help="Only this namespace; may be given more than once.")
def manifests(
    target: str,
    output: Path | None,
    namespace: str | None,
    image: str | None,
    replicas: int,
    namespaces: tuple[str, ...],
) -> None:
    """Write all that an operator needs in a cluster: CRDs, least-privilege RBAC, a hardened Deployment and more.

    The rules follow from what the controllers declare. `kubectl apply -k DIR/base` installs it.

    Example: konverge manifests operators/webapp -o deploy
    """
    # Loaded here: the other commands need none of it.
    from konverge.cli.manifests.release import Release, files_of

    operator = load_operator(target)
    release = Release(
        operator=operator,
        target=target,
        namespace=namespace or f"{operator.name}-system",
        image=image or f"{operator.name}:0.1.0",
        replicas=replicas,
        namespaces=namespaces,
    )
    files = files_of(release)
    if output is None:
        click.echo(
            "---\n".join(text for name, text in files.items() if name.startswith("base/") and "kust" not in name)
        )
        return
    for name, text in files.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(f"wrote {path}")
    click.echo(f"install it: kubectl apply -k {output / 'base'}")
