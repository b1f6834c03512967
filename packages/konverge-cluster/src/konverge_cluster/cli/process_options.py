"""The options of commands that run containers as processes: `--run` and `--keep`, together the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import option

if TYPE_CHECKING:
    from konverge_cluster.processes import Processes

__all__ = ["print_runtime", "runtime"]

_run = option(
    "--run",
    "tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="IMAGES.yaml",
    help="Run containers as local processes: a table from images to programs (docs/process-nodes.md); may be repeated.",
)
_keep = option("--keep", is_flag=True, help="Keep the files of processes: logs and volumes.")


def runtime(command: Callable[..., None]) -> Callable[..., None]:
    """Add both options to a command, which gets the argument `runtime`: None without any table."""

    @_run
    @_keep
    @wraps(command)
    def with_runtime(*, tables: tuple[Path, ...], keep: bool, **options: Any) -> None:
        command(runtime=_runtime_from(tables, keep=keep), **options)

    return with_runtime


def _runtime_from(tables: Sequence[Path], *, keep: bool) -> Processes | None:
    """Return the runtime for tables of local images, None without any.

    Raises: click.BadParameter for an invalid table.
    """
    if not tables:
        return None
    # Imported here because most commands need no processes.
    from konverge_cluster.processes import LocalImages, Processes

    try:
        return Processes(LocalImages.load(*tables), keep=keep)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--run") from error


def print_runtime(runtime: Processes | None) -> None:
    """Print where containers run."""
    if runtime is not None:
        mode = "with namespaces" if runtime.namespaces else "without namespaces"
        click.echo(f"processes    {len(runtime.images.images)} local images, {mode}, below {runtime.options.directory}")
