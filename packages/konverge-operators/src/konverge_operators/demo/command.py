"""The command `konverge demo`: run an operator step by step.

The WebApp operator runs on an embedded cluster or on an existing one, the Database operator on process nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from konverge.errors import KonvergeError

if TYPE_CHECKING:
    from konverge.manager import Operator
    from konverge.objects import Unstructured
    from konverge_operators.demo.environment import DemoEnvironment
    from konverge_operators.demo.replicas import Replicas
    from konverge_operators.demo.steps import StepPrinter

__all__ = ["demo"]

TARGET = "konverge_operators.webapp"
_LEASE_DURATION = 3.0
_REPLICAS = 2
_INTERRUPTED = 130


@click.command(context_settings={"show_default": True})
@click.argument("name", type=click.Choice(["webapp", "database", "myapp"]), default="webapp")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Run on this cluster instead of an embedded one.",
)
@click.option("--context", help="Context of the kubeconfig.")
def demo(name: str, kubeconfig: str | None, context: str | None) -> None:
    """Run the lifecycle of a WebApp, a Database or a MyApp step by step and check each step; no cluster is needed.

    WebApp: two replicas of the operator run as processes, and the leader is killed on the way. On an existing cluster
    everything happens in a new namespace. The namespace and the CRD are removed at the end.

    Database: three PostgreSQL servers run as processes of this machine, their leader is killed, and a backup is
    restored (Linux; two minutes).

    MyApp: a program with a PostgreSQL and a redis-server, as processes of this machine; its database outlives it.

    A step that fails ends the demo with exit code 1. Ctrl-C stops it at any time and cleans up.

    Example: konverge demo database
    """
    if context and not kubeconfig:
        raise click.UsageError("--context needs a kubeconfig: add --kubeconfig")
    if name != "webapp" and kubeconfig:
        raise click.UsageError(f"the demo of {name} has a cluster of its own: leave out --kubeconfig")
    if not kubeconfig and find_spec("konverge_cluster") is None:
        raise click.UsageError(
            "the embedded cluster is not installed: pip install 'konverge-operators[cluster]' (or pass --kubeconfig)"
        )
    try:
        if name != "webapp":
            from konverge_operators.demo.database import check_machine

            check_machine()
            asyncio.run(_run_until_interrupted(partial(_run_processes, name)))
        else:
            asyncio.run(_run_until_interrupted(partial(_run, kubeconfig, context)))
    except asyncio.CancelledError:
        click.echo("interrupted; nothing is left behind", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error


async def _run_until_interrupted(run: Callable[[], Awaitable[None]]) -> None:
    from konverge.manager.signals import stop_on_signals

    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"

    def stop() -> None:
        task.cancel()

    async with stop_on_signals(stop):
        await run()


async def _run_processes(name: str) -> None:
    from konverge.cli.log_files import log_to_file
    from konverge_operators.demo.database import run_database_demo
    from konverge_operators.demo.myapp import run_myapp_demo
    from konverge_operators.demo.steps import StepPrinter

    printer, run = StepPrinter(), run_myapp_demo if name == "myapp" else run_database_demo
    with TemporaryDirectory(prefix="konverge-demo-") as folder, log_to_file(Path(folder) / "cluster.log"):
        await run(printer)
    click.echo(f"Done in {printer.seconds:.1f} s, nothing is left behind.")


async def _run(kubeconfig: str | None, context: str | None) -> None:
    # Imported here because the other commands do not need these modules.
    from konverge.cli.log_files import log_to_file
    from konverge.cli.targets import load_operator
    from konverge_operators.demo.environment import embedded_environment, existing_environment
    from konverge_operators.demo.steps import StepPrinter

    operator, printer = load_operator(TARGET), StepPrinter()
    with TemporaryDirectory(prefix="konverge-demo-") as name, log_to_file(Path(name) / "cluster.log"):
        folder = Path(name)
        opened = existing_environment(kubeconfig, context) if kubeconfig else embedded_environment(folder)
        async with opened as environment:
            printer.print_step(f"cluster: {environment.description}")
            await _run_in(environment, operator, printer, folder)
    click.echo(f"Done in {printer.seconds:.1f} s, nothing is left behind.")


async def _run_in(environment: DemoEnvironment, operator: Operator, printer: StepPrinter, folder: Path) -> None:
    from konverge_operators.demo.environment import install_operator, operator_arguments, temporary_namespace
    from konverge_operators.demo.kubectl import find_kubectl

    async with temporary_namespace(environment) as client:
        namespace = client.options.namespace
        sample = _load_sample(operator, namespace)
        async with install_operator(environment, client, operator, sample) as has_webhooks:
            webhooks = "webhooks run in this process" if has_webhooks else "no webhooks: the server cannot reach them"
            printer.print_step(f"installed: CRD {', '.join(crd.name for crd in operator.crds())}; {webhooks}")
            arguments = await operator_arguments(environment, client, operator)
            with _start_replicas(arguments, operator, namespace, folder) as replicas:
                await _run_steps(
                    environment,
                    operator,
                    printer,
                    client=client,
                    replicas=replicas,
                    sample=sample,
                    has_webhooks=has_webhooks,
                    kubectl=find_kubectl(environment.arguments, namespace, folder),
                )
                codes = await asyncio.to_thread(replicas.stop)
                if any(codes.values()):
                    raise printer.failure(f"the operator did not shut down cleanly: exit codes {codes}")
    printer.print_step("ended: operator shut down, CRD, webhooks and namespace removed")


async def _run_steps(environment: DemoEnvironment, operator: Operator, printer: StepPrinter, **parts: Any) -> None:
    from konverge_operators.demo.steps import DemoContext, Steps

    context = DemoContext(
        kind=_hub_version(operator), lease_name=operator.name, step_timeout=environment.step_timeout, **parts
    )
    try:
        await Steps(context, printer).run()
    except click.ClickException:
        click.echo(context.replicas.log_tails(), err=True)
        raise


@contextmanager
def _start_replicas(
    arguments: tuple[str, ...], operator: Operator, namespace: str, folder: Path
) -> Generator[Replicas]:
    from konverge_operators.demo.replicas import run_replicas

    place = [*arguments, "--namespace", namespace, "--lease-namespace", namespace]
    lease = ["--leader-elect", "--lease-duration", f"{_LEASE_DURATION:g}", "--metrics-port", "0"]
    with run_replicas([TARGET, *place, *lease], folder) as replicas:
        for number in range(1, _REPLICAS + 1):
            replicas.start(f"{operator.name}-{number}")
        yield replicas


def _load_sample(operator: Operator, namespace: str) -> Unstructured:
    import yaml

    from konverge.objects import Unstructured

    sample = Unstructured(yaml.safe_load(operator.samples[0].read_text()))
    sample["metadata"]["namespace"] = namespace
    return sample


def _hub_version(operator: Operator) -> type[Any]:
    versions = operator.kinds[0]
    return versions[0] if isinstance(versions, tuple) else versions
