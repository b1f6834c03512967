"""`konverge dev`: a cluster, an operator and its samples, and the operator anew whenever its source changes."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from konverge.cli.child_processes import ChildProcess
from konverge.cli.options import PORT, option

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge_cluster.cli.live_table import View

__all__ = ["DevProcess", "dev"]

_KUBECONFIG = Path("konverge.kubeconfig")
_LOOK = 0.5
_GRACE = 10.0
_LOG_LINES = 10


@click.command(context_settings={"show_default": True})
@click.argument("target")
@option("--port", type=PORT, default=0, help="Port of the API server; 0 takes a free one.")
@option("--nodes", "count", type=click.IntRange(0, 100), default=3, help="How many nodes.")
@option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=_KUBECONFIG, help="Kubeconfig to write."
)
@option("--plain", is_flag=True, help="Lines instead of tables; so without a terminal.")
def dev(target: str, port: int, count: int, kubeconfig: Path, plain: bool) -> None:
    """Develop an operator: a cluster in this process, the operator with its webhooks and samples. Ctrl-C ends it.

    TARGET is a package, file or module with an `operator` in it. When its source changes the operator starts anew; the
    cluster and its objects stay. Objects, queues and reconciles are shown while it runs, and nothing is left behind.

    Example: konverge dev konverge_operators.webapp
    """
    from konverge.cli.log_files import logs_in
    from konverge_cluster.cli.dev_sources import folder_of

    folder = folder_of(target)
    plain = plain or not sys.stdout.isatty()
    with TemporaryDirectory(prefix="konverge-dev-") as scratch, logs_in(Path(scratch) / "cluster.log"):
        process = DevProcess(target, kubeconfig, None if plain else Path(scratch) / "operator.log")
        asyncio.run(_dev(process, folder, kubeconfig, port=port, count=count))
    click.echo("ended, nothing is left")


class DevProcess:
    """The operator's process: started, ended and started anew. Its log is a file, or this terminal."""

    def __init__(self, target: str, kubeconfig: Path, log: Path | None) -> None:
        self.address = f"127.0.0.1:{_free_port()}"
        self._arguments = (target, str(kubeconfig), self.address)
        self.log = log
        self._process: ChildProcess | None = None

    def start(self) -> None:
        with self.log.open("ab") if self.log is not None else nullcontext() as output:
            self._process = ChildProcess("konverge_cluster.cli.dev_operator", self._arguments, output=output)

    def ended(self) -> int | None:
        """Give the exit code, once, of a process that ended by itself."""
        code = self._process.code() if self._process is not None else None
        if code is not None:
            self._process = None
        return code

    async def stop(self) -> None:
        """Ask for an orderly end; the loop goes on meanwhile, since the API server that it talks to runs on it."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.terminate()
            await asyncio.to_thread(process.wait, _GRACE)
        finally:
            process.kill()

    def last_lines(self) -> tuple[str, ...]:
        """Give the end of its log."""
        if self.log is None or not self.log.exists():
            return ()
        return tuple(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])


async def _dev(process: DevProcess, folder: Path, kubeconfig: Path, *, port: int, count: int) -> None:
    # Loaded here: the other commands need no API server.
    from konverge.manager.signals import stop_on_signals
    from konverge_cluster.cli.cluster import written_kubeconfig
    from konverge_cluster.cli.live_table import opened_view
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    told = asyncio.Event()
    async with stop_on_signals(told.set), EmbeddedCluster(nodes=count) as running:
        try:
            await running.listen(port=port)
        except OSError as error:
            raise click.ClickException(f"port {port} cannot be listened on: {error.strerror or error}") from error
        with written_kubeconfig(running, kubeconfig):
            click.echo(f"API server   {running.server.url}")
            click.echo(f"kubeconfig   {kubeconfig}")
            click.echo(f"try          konverge why KIND NAMESPACE/NAME --address {process.address}")
            click.echo(f"watched      {folder}; Ctrl-C ends it.")
            with opened_view(plain=process.log is None) as view:
                async with _started(process):
                    await _follow(process, folder, running.client(), view, told)


@asynccontextmanager
async def _started(process: DevProcess) -> AsyncGenerator[None]:
    process.start()
    try:
        yield
    finally:
        await process.stop()


async def _follow(process: DevProcess, folder: Path, client: Client, view: View, told: asyncio.Event) -> None:
    """Show how things are and start the operator anew when its source changes, until told to end."""
    from konverge_cluster.cli.dev_screen import look_at
    from konverge_cluster.cli.dev_sources import changed, snapshot

    before = snapshot(folder)
    while not told.is_set():
        if (code := process.ended()) is not None:
            view.say(f"the operator ended with exit code {code}; it starts anew when its source changes")
        now = snapshot(folder)
        if files := changed(before, now):
            view.say(f"changed: {', '.join(str(path.relative_to(folder)) for path in files)}; the operator starts anew")
            before = now
            await process.stop()
            process.start()
        view.show(await look_at(client, process.address, process.last_lines()))
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await told.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
