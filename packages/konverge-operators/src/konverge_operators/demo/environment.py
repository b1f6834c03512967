"""The environment of the demo: a cluster, a namespace, the CRD and the webhooks. All of it is removed at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from konverge.cli.loopback_webhooks import is_loopback, serve_loopback_webhooks
from konverge.cli.manifests.rbac import rbac_objects
from konverge.cli.manifests.release import Release
from konverge.cli.server_check import check_server
from konverge.client import Client, ClientConfig, exists, has_condition, is_deleted, load_config
from konverge.errors import NotFound
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import Namespace, ServiceAccount
from konverge.manager import Operator
from konverge.objects import ObjectMeta, Unstructured

__all__ = [
    "DemoEnvironment",
    "embedded_environment",
    "existing_environment",
    "install_operator",
    "operator_arguments",
    "temporary_namespace",
]

_EMBEDDED_STEP_TIMEOUT = 60.0
_EXISTING_STEP_TIMEOUT = 300.0
_PREFIX = "konverge-demo-"
_TOKEN_LIFETIME = 3600


@dataclass(frozen=True, kw_only=True)
class DemoEnvironment:
    """A cluster: how to connect to it from code and from a command line, and the timeout of a step in seconds.

    `account` is where the operator's kubeconfig is written, None for the credentials of the demo itself.
    """

    config: ClientConfig
    arguments: tuple[str, ...]
    description: str
    step_timeout: float
    account: Path | None = None


@asynccontextmanager
async def embedded_environment(folder: Path) -> AsyncGenerator[DemoEnvironment]:
    """Start an embedded cluster in this process."""
    from konverge_cluster.embedded_cluster import EmbeddedCluster

    path = folder / "kubeconfig"
    async with EmbeddedCluster() as running:
        await running.listen()
        running.write_kubeconfig(path)
        yield DemoEnvironment(
            config=load_config(kubeconfig=path),
            arguments=("--kubeconfig", str(path)),
            description=f"API server, controllers and {len(running.nodes.nodes)} nodes in this process",
            step_timeout=_EMBEDDED_STEP_TIMEOUT,
            account=folder / "operator.kubeconfig",
        )


@asynccontextmanager
async def existing_environment(kubeconfig: str, context: str | None) -> AsyncGenerator[DemoEnvironment]:
    """Use the cluster of a kubeconfig.

    Raises: click.ClickException when the API server does not answer.
    """
    config = load_config(kubeconfig=kubeconfig, context=context)
    await check_server(config)
    arguments = ("--kubeconfig", kubeconfig, *(("--context", context) if context else ()))
    yield DemoEnvironment(
        config=config, arguments=arguments, description=config.server, step_timeout=_EXISTING_STEP_TIMEOUT
    )


@asynccontextmanager
async def temporary_namespace(environment: DemoEnvironment) -> AsyncGenerator[Client]:
    """Create a namespace, return a client for it, and delete the namespace at the end of the block."""
    timeout = environment.step_timeout
    async with Client.connect(environment.config) as client:
        created = await client.create(Namespace(metadata=ObjectMeta(generate_name=_PREFIX)))
        try:
            # Pods are rejected until the controllers have created this service account.
            await client.wait_for(ServiceAccount, "default", exists(), namespace=created.name, timeout=timeout)
            yield client.using(namespace=created.name)
        finally:
            await client.delete(Namespace, created.name, missing_ok=True)
            await client.wait_for(Namespace, created.name, is_deleted(), timeout=timeout)


async def operator_arguments(environment: DemoEnvironment, client: Client, operator: Operator) -> tuple[str, ...]:
    """Return how the operator connects: in an embedded cluster as its own service account, with the generated rights.

    The roles are in the namespace of the demo, and are removed with it.
    """
    if environment.account is None:
        return environment.arguments
    namespace = client.options.namespace
    release = Release(
        operator=operator,
        target="demo",
        image="demo",
        namespace=namespace,
        namespaces=(namespace,),
        installation=operator.name,  # the namespace is its own, and `konverge run` names the lease after the operator
    )
    for obj in rbac_objects(release):
        if obj.metadata.get("namespace"):  # a webhook's certificate is kept up to date by this process
            await client.create(obj)
    token = await client.create_token(release.name, lifetime=_TOKEN_LIFETIME)
    _write_kubeconfig(environment.account, token.token, Path(environment.arguments[1]))
    return ("--kubeconfig", str(environment.account))


def _write_kubeconfig(path: Path, token: str, admin: Path) -> None:
    """Write the kubeconfig of the admin with another user."""
    kubeconfig = yaml.safe_load(admin.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(kubeconfig))


@asynccontextmanager
async def install_operator(
    environment: DemoEnvironment, client: Client, operator: Operator, sample: Unstructured
) -> AsyncGenerator[bool]:
    """Install the CRDs and, if the API server can reach this process, the webhooks; return whether it can.

    The end of the block removes the CRDs, the webhooks and every object of these kinds. For that reason the demo
    refuses to run when one of the CRDs already exists.

    Raises: click.ClickException when a CRD already exists.
    """
    for crd in operator.crds():
        await _refuse_existing_crd(client, crd.name)
    try:
        await _apply(client, operator.crds(), environment.step_timeout)
        if not is_loopback(environment.config.server):
            yield False
            return
        async with serve_loopback_webhooks(client, operator, sample, name=client.options.namespace) as address:
            if address is not None:
                await _apply(client, operator.crds(address), environment.step_timeout)
            yield address is not None
    finally:
        await _remove(client, operator, environment.step_timeout)


async def _refuse_existing_crd(client: Client, name: str) -> None:
    try:
        await client.get(CustomResourceDefinition, name)
    except NotFound:
        return
    raise click.ClickException(
        f"the CRD {name} already exists in this cluster, and the demo would remove it (use another cluster)"
    )


async def _apply(client: Client, crds: list[Unstructured], timeout: float) -> None:
    for crd in crds:
        await client.apply(crd, force=True)
        await client.wait_for(CustomResourceDefinition, crd.name, has_condition("Established"), timeout=timeout)


async def _remove(client: Client, operator: Operator, timeout: float) -> None:
    for crd, versions in zip(operator.crds(), operator.kinds, strict=True):
        await _remove_finalizers(client, versions[0] if isinstance(versions, tuple) else versions)
        await client.delete(CustomResourceDefinition, crd.name, missing_ok=True)
        await client.wait_for(CustomResourceDefinition, crd.name, is_deleted(), timeout=timeout)


async def _remove_finalizers(client: Client, kind: type[Any]) -> None:
    """Remove the finalizers of remaining objects: the operator no longer runs, so nothing else removes them."""
    with suppress(NotFound):
        for remaining in await client.list(kind):
            if remaining.metadata.finalizers:
                await client.patch(kind, remaining.key, {"metadata": {"finalizers": None}})
