"""The command."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import click

from konverge.cli.options import folder, image, namespace, option
from konverge.cli.output_files import write_files
from konverge.cli.sources import root_of
from konverge.cli.targets import load_operator, source_of, split_target

__all__ = ["manifests"]

_NAME = {"metavar": "NAME"}
_REPLICAS = click.IntRange(1, 100)


@click.command(context_settings={"show_default": True})
@click.argument("target")
@option("--output", "-o", type=folder, metavar="FOLDER", help="Folder to write; else print.")
@option("--namespace", type=namespace, help="Namespace that it runs in; NAME-system unless given.", **_NAME)
@option("--image", type=image, help="Image of the operator; NAME:0.1.0 unless given.", **_NAME)
@option("--replicas", type=_REPLICAS, default=2, help="How many run; one of them leads.")
@option(
    "--watch",
    "namespaces",
    variable="KONVERGE_NAMESPACES",
    type=namespace,
    multiple=True,
    help="Only this namespace; may be given more than once.",
    **_NAME,
)
def manifests(target: str, output: Path | None, **options: Any) -> None:
    """Write all that an operator needs in a cluster: CRDs, least-privilege RBAC, a hardened Deployment and more.

    TARGET is a package, file or module with an `operator` in it. The rules follow from what the controllers declare.
    `kubectl apply -k FOLDER/base` installs it. Nothing is written unless all of it can be.

    Example: konverge manifests konverge_operators.webapp -o deploy
    """
    files = _files(target, options)
    if output is None:
        click.echo(
            "---\n".join(text for name, text in files.items() if name.startswith("base/") and "kust" not in name)
        )
        return
    write_files({output / name: text for name, text in files.items()})
    for name in files:
        click.echo(f"wrote {output / name}")
    click.echo(f"install it: kubectl apply -k {output / 'base'}")


def _files(target: str, options: dict[str, Any]) -> dict[str, str]:
    # Loaded here: the other commands need none of it.
    from konverge.cli.manifests.release import Release, files_of

    operator = load_operator(target)
    try:
        release = Release(
            operator=operator,
            target=_in_the_image(target),
            namespace=options["namespace"] or f"{operator.name}-system",
            image=options["image"] or f"{operator.name}:0.1.0",
            replicas=options["replicas"],
            namespaces=options["namespaces"],
            requirement=_requirement(target),
        )
        return files_of(release)
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{target}: {error}") from error


def _requirement(target: str) -> str:
    """Return the distribution that a target belongs to, or "" for source files that are not installed."""
    place, _ = split_target(target)
    if source_of(place) is not None:
        return ""
    top = place.partition(".")[0]
    # An editable install does not list its modules, so fall back to the distribution of the same name.
    for name in (*packages_distributions().get(top, ()), top.replace("_", "-")):
        try:
            return distribution(name).name
        except PackageNotFoundError:
            continue
    return ""


def _in_the_image(target: str) -> str:
    """Give a target as it is called where the image is built: here, or in the folder that its packages are in."""
    place, name = split_target(target)
    source = source_of(place)
    if source is None or not os.path.exists(place):
        return target  # a module is called the same everywhere
    path = Path(place).resolve()
    within = path.is_relative_to(Path.cwd()) and source.parent / "__init__.py" != Path.cwd() / source.name
    root = Path.cwd() if within else root_of(source)
    if root != Path.cwd():
        click.echo(f"note: build the image in {root}, where the operator is", err=True)
    told = path.relative_to(root).as_posix() if path != root else source.name
    return f"{told}:{name}" if name else told
