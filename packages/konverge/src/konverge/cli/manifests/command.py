"""The command `konverge manifests`."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import cidr, folder, image, namespace, option, pinned_image
from konverge.cli.output_files import write_files
from konverge.cli.sources import import_root
from konverge.cli.targets import load_operator, source_of, split_target

if TYPE_CHECKING:
    from konverge.cli.manifests.requirements import Requirements

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
@option("--installation", type=namespace, help="Name of the objects; NAME, or NAME-NAMESPACE with --watch.", **_NAME)
@option(
    "--apiserver-cidr",
    "apiserver_cidrs",
    type=cidr,
    multiple=True,
    help="Addresses of the API servers, the only clients of webhooks then; may be repeated.",
    metavar="CIDR",
)
@option("--insecure-metrics", is_flag=True, help="Serve /metrics and /debug to everybody, in plain HTTP.")
@option("--base-image", type=pinned_image, help="Base of the image, pinned by digest.", metavar="NAME@sha256:DIGEST")
@option(
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Requirements with hashes, to install in the image; generate them with uv or pip-compile.",
    metavar="FILE",
)
def manifests(target: str, output: Path | None, **options: Any) -> None:
    """Generate the objects that an operator needs: CRDs, least-privilege RBAC, a hardened Deployment and more.

    TARGET is a package, file or module that defines `operator`. The RBAC rules are derived from the controllers.
    `kubectl apply -k FOLDER/base` installs the operator. With --watch, several installations can work side by side:
    they share the CRDs, which are in FOLDER/crds then. Either all files are written, or none.

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
    if "crds/crds.yaml" in files:
        click.echo(f"install the CRDs, once for all installations: kubectl apply -k {output / 'crds'}")
    click.echo(f"install it: kubectl apply -k {output / 'base'}")
    click.echo(f"install its alerts and dashboards: kubectl apply -k {output / 'monitoring'}")


def _files(target: str, options: dict[str, Any]) -> dict[str, str]:
    # Imported here because the other commands do not need this module.
    from konverge.cli.manifests.release import Release, default_installation, files_of

    operator = load_operator(target)
    installation = options["installation"] or default_installation(operator.name, options["namespaces"])
    same = ("replicas", "namespaces", "apiserver_cidrs", "insecure_metrics")
    try:
        release = Release(
            operator=operator,
            target=_target_in_image(target),
            namespace=options["namespace"] or f"{installation}-system",
            image=options["image"] or f"{operator.name}:0.1.0",
            installation=installation,
            base_image=options["base_image"] or "",
            requirement=_requirement(target),
            requirements=_requirements(target, options["requirements"]),
            **{name: options[name] for name in same},
        )
        return files_of(release)
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{target}: {error}") from error


def _requirements(target: str, path: Path | None) -> Requirements | None:
    """Read a file of requirements, and check that it installs the operator.

    Raises: ValueError when it does not, or when the build of the image cannot read it.
    """
    from konverge.cli.manifests.requirements import parse_requirements

    if path is None:
        return None
    root = _build_folder(target)
    if not path.resolve().is_relative_to(root):
        raise ValueError(f"{path} is not in {root}, the folder where the image is built")
    found = parse_requirements(path.read_text(), path.resolve().relative_to(root).as_posix())
    for name in {"konverge", _requirement(target) or "konverge"}:
        if name not in found:
            raise ValueError(f"{path} does not install {name}")
    return found


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
    path, root = Path(place).resolve(), _build_folder(target)
    if root != Path.cwd():
        click.echo(f"note: build the image in {root}, the folder of the operator", err=True)
    relative = path.relative_to(root).as_posix() if path != root else source.name
    return f"{relative}:{name}" if name else relative


def _build_folder(target: str) -> Path:
    """Return the folder where the image is built: this one, or the one with the packages of the target."""
    place, _ = split_target(target)
    source = source_of(place)
    if source is None or not os.path.exists(place):
        return Path.cwd()
    within = Path(place).resolve().is_relative_to(Path.cwd())
    return Path.cwd() if within and source.parent / "__init__.py" != Path.cwd() / source.name else import_root(source)
