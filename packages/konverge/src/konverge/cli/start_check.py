"""Checks of `konverge run` before it starts: each problem is one line that says what to do.

They never fail the start. A CRD or a namespace may be created later, and then the operator goes on by itself; a server
that does not answer is tried again by the manager. Missing permissions are checked by the manager itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.errors import KonvergeError, NotFound
from konverge.k8s.core.v1 import Namespace
from konverge.manager import Operator
from konverge.objects import Kind, kind_of

__all__ = ["start_warnings"]

_TIMEOUT = 4.0


async def start_warnings(config: ClientConfig, operator: Operator, target: str, namespaces: Iterable[str]) -> list[str]:
    """Return what will keep an operator from its work, one line each; nothing if the server does not answer."""
    try:
        async with asyncio.timeout(_TIMEOUT), Client.connect(config, retry=RetryPolicy(attempts=1)) as client:
            missing = [line async for line in _missing_kinds(client, operator, target)]
            return missing + [line async for line in _missing_namespaces(client, namespaces)]
    except (KonvergeError, TimeoutError):
        return []


async def _missing_kinds(client: Client, operator: Operator, target: str) -> AsyncIterator[str]:
    served = {resource.kind for resource in await client.discovery.resources()}
    own = {kind_of(version) for kind in operator.kinds for version in (kind if isinstance(kind, tuple) else (kind,))}
    needed = (kind_of(trigger.kind) for controller in operator.controllers for trigger in controller.triggers)
    for kind in dict.fromkeys(needed):
        if kind not in served:
            yield f"the server does not serve {kind} yet: {_advice(kind, target) if kind in own else 'install its CRD'}"


def _advice(kind: Kind, target: str) -> str:
    return f"add --install-crds, or run `konverge crd {target} | kubectl apply -f -` ({kind.resource})"


async def _missing_namespaces(client: Client, namespaces: Iterable[str]) -> AsyncIterator[str]:
    for name in namespaces:
        try:
            await client.get(Namespace, name)
        except NotFound:
            yield f"namespace {name!r} does not exist yet: create it, or correct --namespace"
        except KonvergeError:
            continue  # reading namespaces needs a permission of its own
