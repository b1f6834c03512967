"""Checks of `konverge run` before it starts: each problem is one line that says what to do.

They never fail the start. A CRD or a namespace may be created later, and then the operator goes on by itself; a server
that does not answer is tried again by the manager. Missing permissions are checked by the manager itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.errors import KonvergeError, NotFound
from konverge.k8s.core.v1 import Namespace
from konverge.manager import Operator
from konverge.objects import Kind, kind_of

__all__ = ["start_warnings"]

_TIMEOUT = 10.0


async def start_warnings(
    config: ClientConfig, operator: Operator, target: str, namespaces: Iterable[str], lease_namespace: str = ""
) -> list[str]:
    """Return what will keep an operator from its work, one line each; what it found if the server stops answering.

    `namespaces` are those that it watches; "" as `lease_namespace` if it has no lease.
    """
    needed = [(name, "--namespace") for name in namespaces]
    if lease_namespace:
        needed.append((lease_namespace, "--lease-namespace"))
    found: list[str] = []
    with suppress(KonvergeError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT), Client.connect(config, retry=RetryPolicy(attempts=1)) as client:
            found += [line async for line in _missing_kinds(client, operator, target)]
            found += [line async for line in _missing_namespaces(client, needed)]
    return found


async def _missing_kinds(client: Client, operator: Operator, target: str) -> AsyncIterator[str]:
    served = {resource.kind for resource in await client.discovery.resources()}
    own = {kind_of(version) for kind in operator.kinds for version in (kind if isinstance(kind, tuple) else (kind,))}
    needed = (kind_of(trigger.kind) for controller in operator.controllers for trigger in controller.triggers)
    for kind in dict.fromkeys(needed):
        if kind not in served:
            yield f"the server does not serve {kind} yet: {_advice(kind, target) if kind in own else 'install its CRD'}"


def _advice(kind: Kind, target: str) -> str:
    return f"add --install-crds, or run `konverge crd {target} | kubectl apply -f -` ({kind.resource})"


async def _missing_namespaces(client: Client, namespaces: Iterable[tuple[str, str]]) -> AsyncIterator[str]:
    for name, setting in namespaces:
        try:
            await client.get(Namespace, name)
        except NotFound:
            command = f"kubectl create namespace {name}"
            yield f"namespace {name!r} does not exist yet: run `{command}`, or correct {setting}"
        except KonvergeError:
            continue  # reading namespaces needs a permission of its own
