"""Preflight: before anything starts, ask the server whether this process may do what its controllers declare.

What is missing is said once, at the start, as the RBAC rules to add, instead of as one failure after the other. It is
advice: a permission may come later, and a server without access reviews is tolerated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import yaml

from konverge.client import Client
from konverge.controller import Permission, rules_of
from konverge.errors import ApiError, Forbidden, KonvergeError
from konverge.k8s.authorization.v1 import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec

__all__ = ["missing_permissions", "rules_yaml", "warn_of_missing"]

_log = logging.getLogger("konverge.manager")

_AT_ONCE = 10


async def missing_permissions(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = ()
) -> list[Permission] | None:
    """Give the permissions that are missing in any of the namespaces; None when the server does not answer reviews."""
    questions = [(one, namespace) for one in sorted(set(permissions)) for namespace in namespaces or ("",)]
    few = asyncio.Semaphore(_AT_ONCE)  # held across each request: a start is no reason to flood a server

    async def ask(permission: Permission, namespace: str) -> bool:
        async with few:
            return await _is_allowed(client, permission, namespace)

    try:
        # The first one alone: a server that answers no reviews is not asked for all of them.
        allowed = [await ask(*question) for question in questions[:1]]
        allowed += await asyncio.gather(*(ask(*question) for question in questions[1:]))
    except KonvergeError as error:
        if isinstance(error, ApiError) and not isinstance(error, Forbidden):
            _log.info("The server answers no access reviews; permissions are not checked at start")
        else:
            _log.warning("Permissions could not be checked at start: %s", error)
        return None
    found = [one for (one, _), may in zip(questions, allowed, strict=True) if not may]
    return list(dict.fromkeys(found))


async def warn_of_missing(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = ()
) -> list[Permission]:
    """Check, and log the rules that are missing as YAML."""
    missing = await missing_permissions(client, permissions, namespaces=namespaces) or []
    if missing:
        _log.warning("Permissions are missing; add these RBAC rules:\n%s", rules_yaml(missing))
    return missing


def rules_yaml(permissions: Iterable[Permission]) -> str:
    """Write rules as they stand in a Role or ClusterRole."""
    text: str = yaml.safe_dump({"rules": rules_of(permissions)}, sort_keys=False, default_flow_style=None)
    return text


async def _is_allowed(client: Client, permission: Permission, namespace: str) -> bool:
    attributes = ResourceAttributes(
        group=permission.group,
        resource=permission.resource,
        subresource=permission.subresource or None,
        verb=permission.verb,
        namespace=namespace or None,
    )
    review = await client.create(
        SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    )
    return bool(review.status and review.status.allowed)
