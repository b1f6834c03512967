"""The command `konverge dev`: run an operator on an embedded cluster, and restart it when its source changes."""

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
from konverge.cli.dev_address import DEV_KUBECONFIG
from konverge.cli.options import PORT, option
from konverge_cluster.cli import process_options
from konverge_cluster.cli.cluster import no_rbac

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge_cluster.cli.live_table import View
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.processes import Processes

__all__ = ["DevProcess", "dev"]

_KUBECONFIG = Path(DEV_KUBECONFIG)
_POLL_INTERVAL = 0.5
_GRACE = 10.0
_LOG_LINES = 10


@click.command(context_settings={"show_default": True})
@click.argument("target", required=False)
@option("--port", type=PORT, default=0, help="Port of the API server; 0 uses a free one.")
@option("--nodes", "count", type=click.IntRange(0, 100), default=3, help="Number of nodes.")
@option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=_KUBECONFIG, help="Kubeconfig to write."
)
@process_options.runtime
@option("--plain", is_flag=True, help="Print lines instead of tables; the default without a terminal.")
@no_rbac
def dev(
    target: str, port: int, count: int, kubeconfig: Path, runtime: Processes | None, plain: bool, no_rbac: bool
) -> None:
    """Run an operator with its webhooks and samples on a cluster in this process. Ctrl-C stops it.

    TARGET is a package, file or module that defines `operator`. When its source changes, the operator is restarted; the
    cluster and its objects stay. The command shows objects, queues and reconciles, and leaves nothing behind.

    Example: konverge dev konverge_operators.webapp

    With `--run`, the local images that the operator ships run as processes.
    """
    # Imported here because the other commands do not need the API server.
    from konverge.cli.log_files import log_to_file
    from konverge_cluster.cli.dev_sources import folder_of
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    folder = folder_of(target)
    plain = plain or not sys.stdout.isatty()
    with TemporaryDirectory(prefix="konverge-dev-") as scratch, log_to_file(Path(scratch) / "cluster.log"):
        process = DevProcess(target, kubeconfig, None if plain else Path(scratch) / "operator.log")
        new = EmbeddedCluster(nodes=count, runtime=runtime, rbac=not no_rbac)
        asyncio.run(_dev(process, folder, kubeconfig, new, port=port))
    click.echo("stopped, nothing is left behind")


class DevProcess:
    """The process of the operator, which can be restarted. It logs to a file, or to this terminal if `log` is None."""

    def __init__(self, target: str, kubeconfig: Path, log: Path | None) -> None:
        self.address = f"127.0.0.1:{_free_port()}"
        self._arguments = (target, str(kubeconfig), self.address)
        self.log = log
        self._process: ChildProcess | None = None

    def start(self) -> None:
        with self.log.open("ab") if self.log is not None else nullcontext() as output:
            self._process = ChildProcess("konverge_cluster.cli.dev_operator", self._arguments, output=output)

    def poll(self) -> int | None:
        """Return the exit code of a process that exited on its own, once; otherwise None."""
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            self._process = None
        return code

    async def stop(self) -> None:
        """Shut the process down without blocking the event loop, which runs the API server that it uses."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.terminate()
            await asyncio.to_thread(process.wait, _GRACE)
        finally:
            process.kill()

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the log."""
        if self.log is None or not self.log.exists():
            return ()
        return tuple(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])


async def _dev(process: DevProcess, folder: Path, kubeconfig: Path, new: EmbeddedCluster, *, port: int) -> None:
    from konverge.manager.signals import stop_on_signals
    from konverge_cluster.cli.cluster import temporary_kubeconfig
    from konverge_cluster.cli.live_table import open_view

    stopped = asyncio.Event()
    async with stop_on_signals(stopped.set), new as running:
        try:
            await running.listen(port=port)
        except OSError as error:
            raise click.ClickException(f"cannot listen on port {port}: {error.strerror or error}") from error
        with temporary_kubeconfig(running, kubeconfig, operator=process.address):
            click.echo(f"API server   {running.server.url}")
            click.echo(f"kubeconfig   {kubeconfig}")
            process_options.print_runtime(running.runtime)
            click.echo(f"try          kubectl --kubeconfig {kubeconfig} get crds; {_why_command(kubeconfig)}")
            click.echo(f"watching     {folder}; Ctrl-C stops it.")
            with open_view(plain=process.log is None) as view:
                async with _run_process(process):
                    await _loop(process, folder, running.client(), view, stopped)


@asynccontextmanager
async def _run_process(process: DevProcess) -> AsyncGenerator[None]:
    process.start()
    try:
        yield
    finally:
        await process.stop()


async def _loop(process: DevProcess, folder: Path, client: Client, view: View, stopped: asyncio.Event) -> None:
    """Show the status, and restart the operator when its source changes, until the command is stopped."""
    from konverge_cluster.cli.dev_sources import changed_files, snapshot
    from konverge_cluster.cli.dev_status import read_status

    before = snapshot(folder)
    while not stopped.is_set():
        if (code := process.poll()) is not None:
            view.print_message(f"the operator exited with code {code}; it is restarted when its source changes")
        now = snapshot(folder)
        if files := changed_files(before, now):
            names = ", ".join(str(path.relative_to(folder)) for path in files)
            view.print_message(f"changed: {names}; restarting the operator")
            before = now
            await process.stop()
            process.start()
        view.show(await read_status(client, process.address, process.last_lines()))
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_INTERVAL):
                await stopped.wait()


def _why_command(kubeconfig: Path) -> str:
    """Return the command that asks this operator; `konverge why` finds the default kubeconfig by itself."""
    return f"{'' if kubeconfig == _KUBECONFIG else f'KUBECONFIG={kubeconfig} '}konverge why"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
