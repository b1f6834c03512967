"""The ground that the demo stands on: a cluster, a namespace, the CRD and webhooks, and all of it removed again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from konverge.cli.loopback_webhooks import is_loopback, loopback_hooks
from konverge.cli.reachability import check_answers
from konverge.client import Client, ClientConfig, condition, deleted, exists, load_config
from konverge.errors import NotFound
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import Namespace, ServiceAccount
from konverge.manager import Operator
from konverge.objects import ObjectMeta, Unstructured

__all__ = ["Ground", "cluster_here", "cluster_there", "installed", "namespace_of_its_own"]

_HERE = 60.0
_THERE = 300.0
_PREFIX = "konverge-demo-"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A cluster: how to reach it, in code and on a command line, and how many seconds a step on it may take."""

    config: ClientConfig
    arguments: tuple[str, ...]
    words: str
    limit: float


@asynccontextmanager
async def cluster_here(folder: Path) -> AsyncGenerator[Ground]:
    """Start a cluster in this process."""
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    path = folder / "kubeconfig"
    async with EmbeddedCluster() as running:
        await running.listen()
        running.write_kubeconfig(path)
        words = f"API server, controllers and {len(running.nodes.machines)} nodes in this process"
        config = load_config(kubeconfig=path)
        yield Ground(config=config, arguments=("--kubeconfig", str(path)), words=words, limit=_HERE)


@asynccontextmanager
async def cluster_there(kubeconfig: str, context: str | None) -> AsyncGenerator[Ground]:
    """Take the cluster of a kubeconfig.

    Raises: click.ClickException when it does not answer.
    """
    config = load_config(kubeconfig=kubeconfig, context=context)
    await check_answers(config)
    arguments = ("--kubeconfig", kubeconfig, *(("--context", context) if context else ()))
    yield Ground(config=config, arguments=arguments, words=config.server, limit=_THERE)


@asynccontextmanager
async def namespace_of_its_own(ground: Ground) -> AsyncGenerator[Client]:
    """Give a client in a new namespace, which goes with the block."""
    async with Client.connect(ground.config) as client:
        made = await client.create(Namespace(metadata=ObjectMeta(generate_name=_PREFIX)))
        try:
            # Pods are refused until the controllers have made this one.
            await client.wait_for(ServiceAccount, "default", exists(), namespace=made.name, timeout=ground.limit)
            yield client.using(namespace=made.name)
        finally:
            await client.delete(Namespace, made.name, missing_ok=True)
            await client.wait_for(Namespace, made.name, deleted(), timeout=ground.limit)


@asynccontextmanager
async def installed(ground: Ground, client: Client, operator: Operator, sample: Unstructured) -> AsyncGenerator[bool]:
    """Install the CRDs and, where the API server can call this process, the webhooks; tell whether it can.

    All of it goes with the block, and every object of these kinds. For that reason CRDs that are there already are
    somebody's, and refused.

    Raises: click.ClickException then.
    """
    for crd in operator.crds():
        await _refuse_what_is_there(client, crd.name)
    try:
        await _apply(client, operator.crds(), ground.limit)
        if not is_loopback(ground.config.server):
            yield False
            return
        async with loopback_hooks(client, operator, sample, name=client.settings.namespace) as address:
            if address is not None:
                await _apply(client, operator.crds(address), ground.limit)
            yield address is not None
    finally:
        await _remove(client, operator, ground.limit)


async def _refuse_what_is_there(client: Client, name: str) -> None:
    try:
        await client.get(CustomResourceDefinition, name)
    except NotFound:
        return
    raise click.ClickException(f"the CRD {name} is in this cluster already, and the demo would remove it in the end")


async def _apply(client: Client, crds: list[Unstructured], limit: float) -> None:
    for crd in crds:
        await client.apply(crd, force=True)
        await client.wait_for(CustomResourceDefinition, crd.name, condition("Established"), timeout=limit)


async def _remove(client: Client, operator: Operator, limit: float) -> None:
    for crd, versions in zip(operator.crds(), operator.kinds, strict=True):
        await _release(client, versions[0] if isinstance(versions, tuple) else versions)
        await client.delete(CustomResourceDefinition, crd.name, missing_ok=True)
        await client.wait_for(CustomResourceDefinition, crd.name, deleted(), timeout=limit)


async def _release(client: Client, kind: type[Any]) -> None:
    """Take the finalizers off what is left: its operator is gone, and it would stay for ever."""
    with suppress(NotFound):
        for left in await client.list(kind):
            if left.metadata.finalizers:
                await client.patch(kind, left.key, {"metadata": {"finalizers": None}})
