"""The command `konverge manifests`."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import click

from konverge.cli.options import folder, image, namespace, option
from konverge.cli.output_files import write_files
from konverge.cli.sources import import_root
from konverge.cli.targets import load_operator, source_of, split_target

__all__ = ["manifests"]

_NAME = {"metavar": "NAME"}
_REPLICAS = click.IntRange(1, 100)


@click.command(context_settings={"show_default": True})
@click.argument("target")
@option("--output", "-o", type=folder, metavar="FOLDER", help="Folder to write; prints by default.")
@option("--namespace", type=namespace, help="Namespace of the operator; NAME-system by default.", **_NAME)
@option("--image", type=image, help="Image of the operator; NAME:0.1.0 by default.", **_NAME)
@option("--replicas", type=_REPLICAS, default=2, help="Number of replicas; one of them is the leader.")
@option(
    "--watch",
    "namespaces",
    variable="KONVERGE_NAMESPACES",
    type=namespace,
    multiple=True,
    help="Watch only this namespace; may be repeated.",
    **_NAME,
)
def manifests(target: str, output: Path | None, **options: Any) -> None:
    """Generate the objects that an operator needs: CRDs, least-privilege RBAC, a hardened Deployment and more.

    TARGET is a package, file or module that defines `operator`. The RBAC rules are derived from the controllers.
    `kubectl apply -k FOLDER/base` installs the operator. Either all files are written, or none.

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
    # Imported here because the other commands do not need this module.
    from konverge.cli.manifests.release import Release, files_of

    operator = load_operator(target)
    try:
        release = Release(
            operator=operator,
            target=_target_in_image(target),
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


def _target_in_image(target: str) -> str:
    """Return a target relative to the folder where the image is built: this one, or the one with its packages."""
    place, name = split_target(target)
    source = source_of(place)
    if source is None or not os.path.exists(place):
        return target  # a module has the same name everywhere
    path = Path(place).resolve()
    within = path.is_relative_to(Path.cwd()) and source.parent / "__init__.py" != Path.cwd() / source.name
    root = Path.cwd() if within else import_root(source)
    if root != Path.cwd():
        click.echo(f"note: build the image in {root}, the folder of the operator", err=True)
    relative = path.relative_to(root).as_posix() if path != root else source.name
    return f"{relative}:{name}" if name else relative
