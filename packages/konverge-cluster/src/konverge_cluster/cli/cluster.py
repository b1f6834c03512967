"""`konverge cluster` and `konverge nodes`: a cluster on this machine, and nodes for a control plane without any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import PORT, option
from konverge.errors import KonvergeError

if TYPE_CHECKING:
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.nodes import Behavior

__all__ = ["cluster", "nodes", "written_kubeconfig"]

_KUBECONFIG = Path("konverge.kubeconfig")


def _behavior(text: str) -> Behavior:
    # Loaded here: the other commands need no nodes.
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
    help='How containers behave: "image=bad:*,never-ready" or "name=web-*,crashes=3"; may be given more than once.',
)


@click.command(context_settings={"show_default": True})
@option("--port", type=PORT, default=0, help="Port on loopback; 0 takes a free one.")
@option("--nodes", "count", type=click.IntRange(0, 100), default=3, help="How many nodes.")
@option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=_KUBECONFIG, help="Kubeconfig to write."
)
@_behaves
@option("--quiet", is_flag=True, help="Do not show what happens.")
def cluster(port: int, count: int, kubeconfig: Path, behaviors: tuple[Behavior, ...], quiet: bool) -> None:
    """Start a cluster in this process: API server, built-in controllers, nodes that run nothing. Ctrl-C ends it.

    Deployments become ready and orphans go, kubectl works, and nothing is left behind.

    Example: konverge cluster --nodes 3

    In another terminal: kubectl --kubeconfig konverge.kubeconfig get nodes
    """
    asyncio.run(_cluster(port, count, kubeconfig, behaviors, quiet))
    click.echo("ended, nothing is left")


@click.command(context_settings={"show_default": True})
@option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; else as kubectl finds it.")
@option("--context", help="Context of the kubeconfig.")
@option("--nodes", "count", type=click.IntRange(1, 100), default=3, help="How many nodes.")
@_behaves
def nodes(kubeconfig: str | None, context: str | None, count: int, behaviors: tuple[Behavior, ...]) -> None:
    """Play nodes for a control plane that has none: pods are scheduled and become ready, and nothing is run.

    Meant for a kube-apiserver and kube-controller-manager without kubelets. Never point it at a cluster that matters:
    its nodes take pods that then run nowhere.

    Example: konverge nodes --kubeconfig admin.kubeconfig --nodes 3
    """
    from konverge.cli.reachability import check_answers
    from konverge.client import Client, load_config
    from konverge.manager.signals import stop_on_signals
    from konverge_cluster.nodes import SimulatedNodes

    async def play() -> None:
        config = load_config(kubeconfig=kubeconfig, context=context)
        await check_answers(config)
        async with Client.connect(config) as client:
            simulated = SimulatedNodes(client, nodes=count)
            simulated.program(*behaviors)
            told = asyncio.Event()
            async with stop_on_signals(told.set), simulated.running():
                click.echo(f"{count} nodes: {', '.join(simulated.nodes)}; Ctrl-C ends them")
                await told.wait()

    try:
        asyncio.run(play())
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error


async def _cluster(port: int, count: int, kubeconfig: Path, behaviors: tuple[Behavior, ...], quiet: bool) -> None:
    from konverge.manager.signals import stop_on_signals
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    told = asyncio.Event()
    async with stop_on_signals(told.set), EmbeddedCluster(nodes=count, behaviors=behaviors) as running:
        try:
            await running.listen(port=port)
        except OSError as error:
            raise click.ClickException(f"port {port} cannot be listened on: {error.strerror or error}") from error
        with written_kubeconfig(running, kubeconfig):
            click.echo(f"API server   {running.server.url}")
            click.echo(f"nodes        {', '.join(running.nodes.nodes) or 'none'}")
            click.echo(f"kubeconfig   {kubeconfig}")
            click.echo(
                f"try          kubectl --kubeconfig {kubeconfig} create deployment web --image=nginx:1.25 --replicas=3"
            )
            click.echo("Ctrl-C ends it.")
            async with _shown(running, quiet):
                await told.wait()


@contextmanager
def written_kubeconfig(running: EmbeddedCluster, path: Path) -> Iterator[None]:
    """Have the kubeconfig at its place while the block runs; a file of somebody else is left alone."""
    try:
        if path.exists() and not _is_ours(path.read_bytes()):
            raise click.ClickException(f"{path} is there and not of a konverge cluster (give another --kubeconfig)")
        running.write_kubeconfig(path)
        written = path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"kubeconfig {path} cannot be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if path.read_bytes() == written:  # else a later cluster has put its own there
                path.unlink()


def _is_ours(content: bytes) -> bool:
    """Tell whether a file is a kubeconfig that names nothing but an embedded cluster: one that was killed left it."""
    import yaml

    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    if not isinstance(document, dict):
        return document is None
    return [one.get("name") for one in document.get("clusters") or ()] == ["konverge"]


@asynccontextmanager
async def _shown(running: EmbeddedCluster, quiet: bool) -> AsyncGenerator[None]:
    """Print each event of the cluster while the block runs: the live log."""
    if quiet:
        yield
        return
    client = running.client()

    async def follow() -> None:
        while True:
            async for change in client.watch("events.events.k8s.io"):
                if change.type != "DELETED":
                    _show(change.object)

    task = asyncio.ensure_future(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _show(event: dict[str, Any]) -> None:
    about = event.get("regarding") or {}
    place = f"{about.get('namespace')}/{about.get('name')}" if about.get("namespace") else about.get("name", "")
    words = f"{event.get('reason', '')}: {event.get('note', '')}"
    click.echo(f"{event.get('type', ''):8}{about.get('kind', ''):12}{place}  {words}"[:200])
