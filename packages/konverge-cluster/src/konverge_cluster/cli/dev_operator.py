"""The operator process of `konverge dev`: it installs and runs an operator from its current source.

Everything that depends on the source happens here: CRDs, webhooks, rights, samples and controllers. A restart picks up
changes. The operator runs under its own service account; when a rule is missing it exits with the rule to add.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import click
import yaml

from konverge.cli.child import exit_with_parent
from konverge.cli.crd_installation import install_crds
from konverge.cli.loopback_webhooks import serve_loopback_webhooks
from konverge.cli.targets import load_operator
from konverge.client import Client, ClientConfig, StaticCredentials, load_config
from konverge.client.transport import HttpTransport
from konverge.errors import AlreadyExists, KonvergeError
from konverge.manager import Operator
from konverge.manager.signals import stop_on_signals
from konverge.objects import Unstructured
from konverge.telemetry import configure_logging
from konverge_cluster.operator_accounts import NAMESPACE, AccountTransport, create_account

__all__ = ["run_dev_operator"]

_log = logging.getLogger("konverge.dev")
_TOKEN_LIFETIME: Final = 30 * 24 * 3600


@click.command()
@click.argument("target")
@click.argument("kubeconfig")
@click.argument("address")
def run_dev_operator(target: str, kubeconfig: str, address: str) -> None:
    """Install and run an operator for `konverge dev`, with metrics at an address."""
    configure_logging("human", "INFO")
    try:
        asyncio.run(_install_and_run(load_operator(target), kubeconfig, address))
    except (KonvergeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


async def _install_and_run(operator: Operator, kubeconfig: str, address: str) -> None:
    config = load_config(kubeconfig=kubeconfig)
    missing: list[str] = []

    def stop(line: str) -> None:
        missing.append(line)
        manager.stop()

    async with Client.connect(config) as client, _install(client, operator):
        transport = AccountTransport(HttpTransport(await _account(client, config, operator)), operator, stop)
        async with Client(transport, options=client.options) as own:
            manager = operator.manager(own, probes=address)
            async with stop_on_signals(manager.stop):
                await _create_samples(client, operator)
                await manager.serve()
    if missing:
        raise click.ClickException("\n".join(missing))


async def _account(client: Client, config: ClientConfig, operator: Operator) -> ClientConfig:
    """Create the service account of the operator with the generated rights; return how it connects."""
    await create_account(client, operator)
    token = await client.create_token(operator.name, namespace=NAMESPACE, lifetime=_TOKEN_LIFETIME)
    return replace(config, credentials=StaticCredentials.of_token(token.token))


@asynccontextmanager
async def _install(client: Client, operator: Operator) -> AsyncGenerator[None]:
    await install_crds(client, operator.crds())
    if not operator.webhooks:
        yield
        return
    async with serve_loopback_webhooks(client, operator, None, name=operator.name) as address:
        await install_crds(client, operator.crds(address))
        yield


async def _create_samples(client: Client, operator: Operator) -> None:
    for sample in operator.samples:
        for document in yaml.safe_load_all(sample.read_text()):
            await _create_sample(client, Unstructured(document))


async def _create_sample(client: Client, sample: Unstructured) -> None:
    """Create a sample unless it exists; one that was changed by hand stays unchanged."""
    try:
        with suppress(AlreadyExists):
            await client.create(sample)
    except KonvergeError as error:
        _log.warning("sample rejected", extra={"kind": sample.kind, "key": str(sample.key), "error": str(error)})


if __name__ == "__main__":
    exit_with_parent()
    run_dev_operator()
