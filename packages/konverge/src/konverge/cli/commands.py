"""The commands of `konverge`: the framework's own, and those that other packages contribute.

A package contributes commands through entry points of the group ``konverge.commands``. A command is imported when it is
run or when its help is printed, so no command pays for the imports of another. For a command of a package of this
project that is not installed, the error shows the `pip install` line.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

__all__ = ["GROUP", "CommandGroup", "load", "missing"]

GROUP = "konverge.commands"

_OWN = {
    "crd": "konverge.cli.crd:crd",
    "graph": "konverge.cli.graph:graph",
    "manifests": "konverge.cli.manifests.command:manifests",
    "models": "konverge.cli.models:models",
    "new": "konverge.cli.new_operator.command:new",
    "run": "konverge.cli.run:run",
    "sample": "konverge.cli.crd:sample",
    "why": "konverge.cli.why:why",
}
_REQUIREMENTS = {
    "cluster": "konverge[cluster]",
    "demo": "konverge-operators[cluster]",
    "dev": "konverge[cluster]",
    "nodes": "konverge[cluster]",
}
"""Commands of the other packages of this project, and what to install for them."""


class CommandGroup(click.Group):
    """A group whose commands are loaded on first use.

    Promises: a contributed command never replaces one of the framework; one that cannot be imported breaks only itself.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands that are installed."""
        return sorted({*super().list_commands(ctx), *_OWN, *_contributed()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None when there is none of that name.

        Raises: click.UsageError when its package is not installed.
        """
        if cmd_name in _OWN:
            module, _, attribute = _OWN[cmd_name].partition(":")
            return _command(getattr(import_module(module), attribute))
        contributed = _contributed().get(cmd_name)
        if contributed is not None:
            return load(contributed)
        if cmd_name in _REQUIREMENTS:
            raise click.UsageError(missing(cmd_name))
        return super().get_command(ctx, cmd_name)


def missing(name: str) -> str:
    """Return the message for a command of a package that is not installed."""
    return f"'konverge {name}' is not installed: pip install '{_REQUIREMENTS[name]}'"


def _contributed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load(entry: EntryPoint) -> click.Command:
    """Return a contributed command; one that cannot be imported fails when it is run, so that help still works."""
    try:
        return _command(entry.load())
    except Exception as error:
        where = f" of {entry.dist.name}" if entry.dist else ""
        message = f"the command {entry.name!r}{where} cannot be imported: {type(error).__name__}: {error}"
        return _failing_command(entry.name, message)


def _failing_command(name: str, message: str) -> click.Command:
    def fail() -> None:
        raise click.ClickException(message)

    return click.Command(name, callback=fail, help=message, short_help="(cannot be imported)")


def _command(value: Any) -> click.Command:
    if not isinstance(value, click.Command):
        raise TypeError(f"{value!r} is not a click command")
    return value
