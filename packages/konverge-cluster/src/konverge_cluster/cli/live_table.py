"""Two views of a `DevStatus`: live tables on a terminal, and lines with changes everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from konverge_cluster.cli.dev_status import DevStatus

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

__all__ = ["LineView", "TableView", "View", "changes", "open_view"]

_MAX_OBJECTS = 20


class View(Protocol):
    """Shows the current status, and messages."""

    def show(self, status: DevStatus) -> None: ...

    def print_message(self, text: str) -> None: ...


class LineView:
    """Prints a line for each object and each controller that has changed."""

    def __init__(self) -> None:
        self._before = DevStatus()

    def show(self, status: DevStatus) -> None:
        for line in changes(self._before, status):
            click.echo(line)
        self._before = status

    def print_message(self, text: str) -> None:
        click.echo(text)


class TableView:
    """Keeps tables up to date on a terminal, and prints messages above them."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, status: DevStatus) -> None:
        self._live.update(tables(status))

    def print_message(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)


@contextmanager
def open_view(*, plain: bool) -> Iterator[View]:
    """Return a view for the block: lines if `plain`, tables otherwise."""
    if plain:
        yield LineView()
        return
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        yield TableView(live)


def changes(before: DevStatus, after: DevStatus) -> list[str]:
    """Return a line for each difference."""
    old = {(row.kind, row.key): row.state for row in before.objects}
    new = {(row.kind, row.key): row.state for row in after.objects}
    lines = [f"{kind} {key}: {state}" for (kind, key), state in new.items() if old.get((kind, key)) != state]
    lines += [f"{kind} {key}: deleted" for kind, key in old if (kind, key) not in new]
    for row in after.queues:
        if row not in before.queues:
            counts = f"{row.reconciles} reconciles, {row.errors} failed, {row.ready} ready, {row.delayed} delayed"
            lines.append(f"controller {row.controller}: {counts}")
    return lines


def tables(status: DevStatus) -> Group:
    """Return the tables of a status."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    objects = Table("Kind", "Object", "State", title="Objects", title_justify="left", expand=True)
    for row in status.objects[:_MAX_OBJECTS]:
        objects.add_row(row.kind, row.key, row.state)
    if len(status.objects) > _MAX_OBJECTS:
        objects.add_row("", f"and {len(status.objects) - _MAX_OBJECTS} more", "")
    columns = ("Controller", "Ready", "Delayed", "Reconciles", "Failed")
    queues = Table(*columns, title="Queues", title_justify="left", expand=True)
    for queue in status.queues:
        counts = map(str, (queue.ready, queue.delayed, queue.reconciles, queue.errors))
        queues.add_row(queue.controller, *counts)
    return Group(objects, queues, Text("\n".join(status.log), style="dim", no_wrap=True, overflow="ellipsis"))
