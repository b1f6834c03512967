"""Two ways to show a `Look`: tables that stay in place on a terminal, lines of what changed everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from konverge_cluster.cli.dev_screen import Look

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

__all__ = ["LineView", "TableView", "View", "changes", "opened_view"]

_MOST_OBJECTS = 20


class View(Protocol):
    """Whoever shows looks, and words in between."""

    def show(self, look: Look) -> None: ...

    def say(self, text: str) -> None: ...


class LineView:
    """Prints a line for each object and each controller that is not as it was."""

    def __init__(self) -> None:
        self._before = Look()

    def show(self, look: Look) -> None:
        for line in changes(self._before, look):
            click.echo(line)
        self._before = look

    def say(self, text: str) -> None:
        click.echo(text)


class TableView:
    """Keeps tables up to date on a terminal; words are printed above them."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, look: Look) -> None:
        self._live.update(tables(look))

    def say(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)


@contextmanager
def opened_view(*, plain: bool) -> Iterator[View]:
    """Give the view that suits, while the block runs."""
    if plain:
        yield LineView()
        return
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        yield TableView(live)


def changes(before: Look, after: Look) -> list[str]:
    """Say in lines what is not as it was."""
    was = {(one.kind, one.key): one.state for one in before.objects}
    now = {(one.kind, one.key): one.state for one in after.objects}
    lines = [f"{kind} {key}: {state}" for (kind, key), state in now.items() if was.get((kind, key)) != state]
    lines += [f"{kind} {key}: gone" for kind, key in was if (kind, key) not in now]
    for one in after.queues:
        if one not in before.queues:
            figures = (
                f"{one.reconciles} reconciles, {one.errors} failed, {one.waiting} waiting, {one.delayed} due later"
            )
            lines.append(f"controller {one.controller}: {figures}")
    return lines


def tables(look: Look) -> Group:
    """Draw a look."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    objects = Table("Kind", "Object", "State", title="Objects", title_justify="left", expand=True)
    for line in look.objects[:_MOST_OBJECTS]:
        objects.add_row(line.kind, line.key, line.state)
    if len(look.objects) > _MOST_OBJECTS:
        objects.add_row("", f"and {len(look.objects) - _MOST_OBJECTS} more", "")
    columns = ("Controller", "Waiting", "Due later", "Reconciles", "Failed")
    queues = Table(*columns, title="Queues", title_justify="left", expand=True)
    for one in look.queues:
        figures = map(str, (one.waiting, one.delayed, one.reconciles, one.errors))
        queues.add_row(one.controller, *figures)
    return Group(objects, queues, Text("\n".join(look.log), style="dim", no_wrap=True, overflow="ellipsis"))
