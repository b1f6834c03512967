"""The command `konverge graph`: draw the components, dependencies and phases of an operator's workflows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import option
from konverge.cli.targets import load_operator, short_repr
from konverge.objects import Key

if TYPE_CHECKING:
    from konverge.client import ClientConfig
    from konverge.workflow import Workflow

__all__ = ["graph"]


def _key(text: str) -> Key:
    try:
        if not text.isprintable() or text != text.strip():
            raise ValueError(f"{short_repr(text)} is not a valid key: write 'namespace/name', or 'name'")
        return Key.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("target")
@click.option(
    "--object", "key", type=_key, metavar="NAMESPACE/NAME", help="Colour the drawing by the state of an object."
)
@click.option("--kind", help="The kind to draw, of an operator with several workflows.")
@click.option("--format", "format_", type=click.Choice(["mermaid", "svg"]), default="mermaid", help="Format to print.")
@option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; found as kubectl does by default."
)
@option("--context", help="Context of the kubeconfig.")
def graph(
    target: str, key: Key | None, kind: str | None, format_: str, kubeconfig: str | None, context: str | None
) -> None:
    """Draw the components of an operator's workflow with their dependencies, and its phases.

    TARGET is a package, file or module that defines `operator`, or TARGET:name if the operator has another name.

    Example: konverge graph konverge_operators.ecommerce --object production/my-ecommerce-app
    """
    from konverge.client import load_config
    from konverge.errors import KonvergeError
    from konverge.workflow import render_mermaid, render_svg

    workflow = _select(list(_workflows_of(load_operator(target))), target, kind)
    try:
        config = load_config(kubeconfig=kubeconfig, context=context) if key is not None else None
        status = asyncio.run(_status_of(config, workflow, key)) if config is not None and key is not None else None
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error
    click.echo(render_svg(workflow, status) if format_ == "svg" else render_mermaid(workflow, status), nl=False)


def _workflows_of(operator: Any) -> Iterable[Workflow[Any]]:
    from konverge.workflow import WorkflowReconciler

    for controller in operator.controllers:
        if isinstance(controller.reconciler, WorkflowReconciler):
            yield controller.reconciler.workflow


def _select(found: list[Workflow[Any]], target: str, kind: str | None) -> Workflow[Any]:
    """Return the workflow of a kind, or the only one."""
    names = [one.kind.__name__ for one in found]
    if not found:
        raise click.UsageError(f"{short_repr(target)} has no workflow: none of its reconcilers is a WorkflowReconciler")
    selected = [one for one in found if kind in (None, one.kind.__name__)]
    if len(selected) != 1:
        problem = f"has no workflow for {short_repr(kind)}" if kind else "has several workflows"
        raise click.UsageError(f"{short_repr(target)} {problem}: add --kind {' or --kind '.join(names)}")
    return selected[0]


async def _status_of(config: ClientConfig, workflow: Workflow[Any], key: Key) -> Any:
    from konverge.cli.server_check import check_server
    from konverge.client import Client

    await check_server(config)
    namespace = key.namespace or config.namespace
    async with Client.connect(config) as client:
        obj = await client.get(workflow.kind, key.name, namespace=namespace)
    return obj.status
