"""The commands `konverge cluster` and `konverge nodes`: an embedded cluster, and simulated nodes for another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from konverge.cli.dev_address import write_dev_address
from konverge.cli.options import PORT, option
from konverge.errors import KonvergeError
from konverge_cluster.cli import process_options

if TYPE_CHECKING:
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.nodes import Behavior
    from konverge_cluster.processes import Processes

__all__ = ["cluster", "no_rbac", "nodes", "print_event", "temporary_kubeconfig"]

_KUBECONFIG = Path("konverge.kubeconfig")


def _behavior(text: str) -> Behavior:
    # Imported here because the other commands do not need the nodes.
    from konverge_cluster.nodes import Behavior

    try:
        return Behavior.parse(text)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error)) from error


_behaves = option(
    "--behaves",
    "behaviors",
    type=_behavior,
    multiple=True,
    metavar="TEXT",
    help='How containers behave: "image=bad:*,never-ready" or "name=web-*,crashes=3"; may be repeated.',
)


no_rbac = option("--no-rbac", is_flag=True, help="Allow every user everything, whatever roles there are.")


@click.command(context_settings={"show_default": True})
@option("--port", type=PORT, default=0, help="Port on loopback; 0 uses a free one.")
@option("--nodes", "count", type=click.IntRange(0, 100), default=3, help="Number of nodes.")
@option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=_KUBECONFIG, help="Kubeconfig to write."
)
@_behaves
@process_options.runtime
@option("--quiet", is_flag=True, help="Do not print events.")
@no_rbac
def cluster(
    port: int,
    count: int,
    kubeconfig: Path,
    behaviors: tuple[Behavior, ...],
    runtime: Processes | None,
    quiet: bool,
    no_rbac: bool,
) -> None:
    """Start a cluster in this process: API server, built-in controllers and simulated nodes. Ctrl-C stops it.

    Deployments become ready, orphans are garbage collected, and kubectl works. The cluster leaves nothing behind.

    Example: konverge cluster --nodes 3

    In another terminal: kubectl --kubeconfig konverge.kubeconfig get nodes
    """
    # Imported here because the other commands do not need the API server.
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    new = EmbeddedCluster(nodes=count, behaviors=behaviors, runtime=runtime, rbac=not no_rbac)
    asyncio.run(_cluster(new, port, kubeconfig, quiet=quiet))
    click.echo("stopped, nothing is left behind")


@click.command(context_settings={"show_default": True})
@option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; found as kubectl does by default."
)
@option("--context", help="Context of the kubeconfig.")
@option("--nodes", "count", type=click.IntRange(1, 100), default=3, help="Number of nodes.")
@_behaves
@process_options.runtime
def nodes(
    kubeconfig: str | None,
    context: str | None,
    count: int,
    behaviors: tuple[Behavior, ...],
    runtime: Processes | None,
) -> None:
    """Run simulated nodes for a control plane that has none: pods become ready, but only images of `--run` run.

    Intended for a kube-apiserver and kube-controller-manager without kubelets. Never use it on a cluster that matters:
    pods that are scheduled to simulated nodes do not run.

    Example: konverge nodes --kubeconfig admin.kubeconfig --nodes 3
    """
    from konverge.cli.server_check import check_server
    from konverge.client import Client, load_config
    from konverge.manager.signals import stop_on_signals
    from konverge_cluster.nodes import SimulatedNodes

    async def run() -> None:
        config = load_config(kubeconfig=kubeconfig, context=context)
        await check_server(config)
        async with Client.connect(config) as client:
            simulated = SimulatedNodes(client, nodes=count)
            simulated.program(*behaviors)
            if runtime is not None:
                runtime.api_server = lambda: _address(config.server)
                simulated.use_runtime(runtime)
            stopped = asyncio.Event()
            async with stop_on_signals(stopped.set), simulated.running():
                click.echo(f"{count} nodes: {', '.join(simulated.nodes)}; Ctrl-C stops them")
                process_options.print_runtime(runtime)
                await stopped.wait()

    try:
        asyncio.run(run())
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error


def _address(server: str) -> tuple[str, int] | None:
    """Return host and port of an API server, for the environment of processes."""
    found = urlsplit(server)
    return (found.hostname, found.port or 443) if found.hostname else None


async def _cluster(new: EmbeddedCluster, port: int, kubeconfig: Path, *, quiet: bool) -> None:
    from konverge.manager.signals import stop_on_signals

    stopped = asyncio.Event()
    async with stop_on_signals(stopped.set), new as running:
        try:
            await running.listen(port=port)
        except OSError as error:
            raise click.ClickException(f"cannot listen on port {port}: {error.strerror or error}") from error
        with temporary_kubeconfig(running, kubeconfig):
            click.echo(f"API server   {running.server.url}")
            click.echo(f"nodes        {', '.join(running.nodes.nodes) or 'none'}")
            click.echo(f"kubeconfig   {kubeconfig}")
            process_options.print_runtime(running.runtime)
            click.echo(
                f"try          kubectl --kubeconfig {kubeconfig} create deployment web --image=nginx:1.25 --replicas=3"
            )
            click.echo("Ctrl-C stops it.")
            async with _print_events(running, quiet):
                await stopped.wait()


@contextmanager
def temporary_kubeconfig(running: EmbeddedCluster, path: Path, *, operator: str = "") -> Iterator[None]:
    """Write a kubeconfig, and remove it after the block; never overwrite or remove a file of another cluster.

    `operator` is the address of an operator that `konverge why` will find in the kubeconfig.
    """
    try:
        if path.exists() and not _is_replaceable(path.read_bytes()):
            raise click.ClickException(
                f"{path} already exists and does not belong to a konverge cluster (use another --kubeconfig)"
            )
        running.write_kubeconfig(path)
        if operator:
            write_dev_address(path, operator)
        written = path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot write kubeconfig {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if path.read_bytes() == written:  # otherwise it belongs to a cluster that was started later
                path.unlink()


def _is_replaceable(content: bytes) -> bool:
    """Report whether a file is empty, or a kubeconfig that a killed embedded cluster has left."""
    import yaml

    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    if not isinstance(document, dict):
        return document is None
    return [cluster.get("name") for cluster in document.get("clusters") or ()] == ["konverge"]


@asynccontextmanager
async def _print_events(running: EmbeddedCluster, quiet: bool) -> AsyncGenerator[None]:
    """Print the events of the cluster during the block."""
    if quiet:
        yield
        return
    client = running.client()

    async def watch() -> None:
        while True:
            async for change in client.watch("events.events.k8s.io"):
                if change.type != "DELETED":
                    print_event(change.object)

    task = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def print_event(event: dict[str, Any]) -> None:
    """Print an event in one line, without control characters."""
    regarding = event.get("regarding") or {}
    namespace, name = regarding.get("namespace"), regarding.get("name", "")
    key = f"{namespace}/{name}" if namespace else name
    message = f"{event.get('reason', '')}: {event.get('note', '')}"
    click.echo(_escape(f"{event.get('type', ''):8}{regarding.get('kind', ''):12}{key}  {message}"[:200]))


def _escape(text: str) -> str:
    """Return a text without control characters: an event must not control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
