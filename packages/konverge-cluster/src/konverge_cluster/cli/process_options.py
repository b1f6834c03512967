"""The options of commands that run containers as processes: `--run` and `--keep`, together the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import option
from konverge.cli.targets import load_operator

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImages, Processes

__all__ = ["print_runtime", "runtime"]

_run = option(
    "--run",
    "tables",
    type=click.Path(),
    is_flag=False,
    flag_value="",
    multiple=True,
    metavar="[TABLE]",
    help="Run containers as local processes (docs/process-nodes.md). TABLE maps images to programs: a YAML file, or an"
    " operator that ships local images; `dev` needs none if its operator ships them. May be repeated.",
)
_keep = option("--keep", is_flag=True, help="Keep the files of processes: logs and volumes.")


def runtime(command: Callable[..., None]) -> Callable[..., None]:
    """Add both options to a command, which gets the argument `runtime`: None without `--run`."""

    @_run
    @_keep
    @wraps(command)
    def with_runtime(*, tables: tuple[str, ...], keep: bool, **options: Any) -> None:
        if "target" in options and options["target"] is None:
            options["target"] = _target_among(tables)
        command(runtime=_runtime_from(tables, options.get("target", ""), keep=keep), **options)

    return with_runtime


def _target_among(tables: Sequence[str]) -> str:
    """Return the target of `konverge dev --run TARGET`, which click reads as the value of `--run`."""
    found = [one for one in tables if one and not _is_file(one)]
    if not found:
        raise click.UsageError("Missing argument 'TARGET': use a package, file or module that defines `operator`")
    return found[-1]


def _runtime_from(tables: Sequence[str], target: str, *, keep: bool) -> Processes | None:
    """Return the runtime for the local images of an operator, if there is one, and of tables; None without `--run`.

    Raises: click.BadParameter for an invalid table, or without any local image.
    """
    if not tables:
        return None
    # Imported here because most commands need no processes.
    from konverge_cluster.processes import LocalImages, Processes

    images = LocalImages()
    try:
        for one in dict.fromkeys(filter(None, (target, *tables))):
            images = images.merge(_load_table(one))
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--run") from error
    if not images.images:
        where = f"{target} ships no local images" if target else "there are no local images"
        raise click.BadParameter(f"{where}: name a table (--run images.yaml)", param_hint="--run")
    return Processes(images, keep=keep)


def _load_table(name: str) -> LocalImages:
    from konverge_cluster.processes import LocalImages

    return LocalImages.load(name) if _is_file(name) else LocalImages.of(load_operator(name))


def _is_file(table: str) -> bool:
    return table.endswith((".yaml", ".yml"))


def print_runtime(runtime: Processes | None) -> None:
    """Print where containers run."""
    if runtime is not None:
        mode = "with namespaces" if runtime.namespaces else "without namespaces"
        click.echo(f"processes    {len(runtime.images.images)} local images, {mode}, below {runtime.options.directory}")
