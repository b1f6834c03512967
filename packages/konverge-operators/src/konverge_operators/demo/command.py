"""`konverge demo`: the WebApp operator at work, step by step, on a cluster of its own or on yours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from konverge.errors import KonvergeError

if TYPE_CHECKING:
    from konverge.manager import Operator
    from konverge.objects import Unstructured
    from konverge_operators.demo.environment import Ground
    from konverge_operators.demo.replicas import Replicas
    from konverge_operators.demo.steps import Teller

__all__ = ["demo"]

TARGET = "konverge_operators.webapp"
_LEASE = 3.0
_REPLICAS = 2
_INTERRUPTED = 130


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Tell it on this cluster; else on one of its own, in this process.",
)
@click.option("--context", help="Context of the kubeconfig.")
def demo(kubeconfig: str | None, context: str | None) -> None:
    """Tell the life of a WebApp, step by step, each step checked; no cluster is needed.

    Two replicas of the operator run as processes; the one that leads is killed on the way. On a cluster of yours
    everything happens in a namespace of its own, which is removed in the end, as is the CRD. A step that does not hold
    ends it with exit code 1. Ctrl-C ends it at any time; nothing is left behind.

    Example: konverge demo
    """
    if context and not kubeconfig:
        raise click.UsageError("--context is one of a kubeconfig: give --kubeconfig as well")
    if not kubeconfig and find_spec("konverge_cluster") is None:
        raise click.UsageError(
            "a cluster of its own needs konverge-cluster: pip install 'konverge-operators[cluster]' (or --kubeconfig)"
        )
    try:
        asyncio.run(_interruptible(kubeconfig, context))
    except asyncio.CancelledError:
        click.echo("interrupted; nothing is left behind", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error


async def _interruptible(kubeconfig: str | None, context: str | None) -> None:
    from konverge.manager.signals import stopped_by_signals

    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"

    def stop() -> None:
        task.cancel()

    async with stopped_by_signals(stop):
        await _play(kubeconfig, context)


async def _play(kubeconfig: str | None, context: str | None) -> None:
    # Loaded here: the other commands need none of it.
    from konverge.cli.log_files import logs_in
    from konverge.cli.targets import load_operator
    from konverge_operators.demo.environment import cluster_here, cluster_there
    from konverge_operators.demo.steps import Teller

    operator, teller = load_operator(TARGET), Teller()
    with TemporaryDirectory(prefix="konverge-demo-") as name, logs_in(Path(name) / "cluster.log"):
        folder = Path(name)
        opened = cluster_there(kubeconfig, context) if kubeconfig else cluster_here(folder)
        async with opened as ground:
            teller.say(f"cluster: {ground.words}")
            await _on(ground, operator, teller, folder)
    click.echo(f"Done in {teller.seconds:.1f} s, nothing is left behind.")


async def _on(ground: Ground, operator: Operator, teller: Teller, folder: Path) -> None:
    from konverge_operators.demo.environment import installed, namespace_of_its_own

    async with namespace_of_its_own(ground) as client:
        namespace = client.settings.namespace
        sample = _sample(operator, namespace)
        async with installed(ground, client, operator, sample) as hooked:
            told = "webhooks answer from this process" if hooked else "no webhooks: the server cannot call here"
            teller.say(f"installed: CRD {', '.join(one.name for one in operator.crds())}; {told}")
            with _running(ground, operator, namespace, folder) as replicas:
                await _tell(ground, operator, teller, client=client, replicas=replicas, sample=sample, hooked=hooked)
                codes = await asyncio.to_thread(replicas.stop)
                if any(codes.values()):
                    raise teller.failed(f"the operator did not end in order: exit codes {codes}")
    teller.say("ended: operator stopped in order, CRD, webhooks and namespace removed")


async def _tell(ground: Ground, operator: Operator, teller: Teller, **parts: Any) -> None:
    from konverge_operators.demo.steps import Scene, Story

    scene = Scene(kind=_hub(operator), lease=operator.name, limit=ground.limit, **parts)
    try:
        await Story(scene, teller).tell()
    except click.ClickException:
        click.echo(scene.replicas.last_words(), err=True)
        raise


@contextmanager
def _running(ground: Ground, operator: Operator, namespace: str, folder: Path) -> Iterator[Replicas]:
    from konverge_operators.demo.replicas import replicas_of

    place = [*ground.arguments, "--namespace", namespace, "--lease-namespace", namespace]
    lease = ["--leader-elect", "--lease-duration", f"{_LEASE:g}", "--metrics-port", "0"]
    with replicas_of([TARGET, *place, *lease], folder) as replicas:
        for number in range(1, _REPLICAS + 1):
            replicas.start(f"{operator.name}-{number}")
        yield replicas


def _sample(operator: Operator, namespace: str) -> Unstructured:
    import yaml

    from konverge.objects import Unstructured

    sample = Unstructured(yaml.safe_load(operator.samples[0].read_text()))
    sample["metadata"]["namespace"] = namespace
    return sample


def _hub(operator: Operator) -> type[Any]:
    versions = operator.kinds[0]
    return versions[0] if isinstance(versions, tuple) else versions
