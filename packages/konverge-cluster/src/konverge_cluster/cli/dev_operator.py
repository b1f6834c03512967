"""The operator's part of `konverge dev`, as a process of its own: whatever changed in its source is new with it.

It brings all that follows from the source: CRDs, webhooks, samples and controllers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import click
import yaml

from konverge.cli.child import end_with_parent
from konverge.cli.loopback_webhooks import loopback_hooks
from konverge.cli.targets import load_operator
from konverge.client import Client, has_condition, load_config
from konverge.errors import AlreadyExists, KonvergeError
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.manager import Operator
from konverge.manager.signals import stop_on_signals
from konverge.objects import Unstructured
from konverge.telemetry import configure_logging

__all__ = ["develop"]

_log = logging.getLogger("konverge.dev")


@click.command()
@click.argument("target")
@click.argument("kubeconfig")
@click.argument("address")
def develop(target: str, kubeconfig: str, address: str) -> None:
    """Install an operator and run it, with metrics at an address; for `konverge dev`."""
    configure_logging("human", "INFO")
    try:
        asyncio.run(_develop(load_operator(target), kubeconfig, address))
    except (KonvergeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


async def _develop(operator: Operator, kubeconfig: str, address: str) -> None:
    config = load_config(kubeconfig=kubeconfig)
    manager = operator.manager(config, probes=address)
    async with stop_on_signals(manager.stop), Client.connect(config) as client, _installed(client, operator):
        for sample in operator.samples:
            for document in yaml.safe_load_all(sample.read_text()):
                await _try(client, Unstructured(document))
        await manager.serve()


@asynccontextmanager
async def _installed(client: Client, operator: Operator) -> AsyncGenerator[None]:
    await _apply(client, operator.crds())
    if not operator.webhooks:
        yield
        return
    async with loopback_hooks(client, operator, None, name=operator.name) as address:
        await _apply(client, operator.crds(address))
        yield


async def _apply(client: Client, crds: list[Unstructured]) -> None:
    for crd in crds:
        await client.apply(crd, force=True)
        await client.wait_for(CustomResourceDefinition, crd.name, has_condition("Established"))


async def _try(client: Client, sample: Unstructured) -> None:
    """Create a sample that is not there; one that was changed by hand stays as it is."""
    try:
        with suppress(AlreadyExists):
            await client.create(sample)
    except KonvergeError as error:
        _log.warning("A sample is refused: %s", error)


if __name__ == "__main__":
    end_with_parent()
    develop()
