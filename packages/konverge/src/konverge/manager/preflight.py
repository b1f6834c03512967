"""Preflight: before anything starts, ask the server whether this process may do what its controllers declare.

What is missing is said once, at the start, as the RBAC rules to add, instead of as one failure after the other. It is
advice: a permission may come later, and a server without access reviews is tolerated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import NamedTuple

import yaml

from konverge.client import Client
from konverge.controller import LEASES, Permission, rules_of
from konverge.errors import ApiError, Forbidden, KonvergeError
from konverge.k8s.authorization.v1 import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec
from konverge.objects import Key

__all__ = ["missing_permissions", "rules_yaml", "warn_of_missing"]

_log = logging.getLogger("konverge.manager")

_AT_ONCE = 4


class _Question(NamedTuple):
    """May this process do that, in a namespace ("" is all), with an object of that name ("" is any)?"""

    permission: Permission
    namespace: str = ""
    name: str = ""


async def missing_permissions(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = (), leases: Iterable[Key] = ()
) -> list[Permission] | None:
    """Give the permissions that are missing in any of the namespaces; None when the server does not answer reviews.

    What is needed for leader election is asked for where the `leases` are, not everywhere.
    """
    questions = _questions(set(permissions), namespaces, list(leases))
    few = asyncio.Semaphore(_AT_ONCE)  # held across each request: a start is no reason to flood a server

    async def ask(question: _Question) -> bool:
        async with few:
            return await _is_allowed(client, question)

    try:
        # The first one alone: a server that answers no reviews is not asked for all of them.
        allowed = [await ask(question) for question in questions[:1]]
        allowed += await asyncio.gather(*(ask(question) for question in questions[1:]))
    except KonvergeError as error:
        if isinstance(error, ApiError) and not isinstance(error, Forbidden):
            _log.info("The server answers no access reviews; permissions are not checked at start")
        else:
            _log.warning("Permissions could not be checked at start: %s", error)
        return None
    found = [question.permission for question, may in zip(questions, allowed, strict=True) if not may]
    return list(dict.fromkeys(found))


async def warn_of_missing(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = (), leases: Iterable[Key] = ()
) -> list[Permission]:
    """Check, and log the rules that are missing as YAML."""
    missing = await missing_permissions(client, permissions, namespaces=namespaces, leases=leases) or []
    if missing:
        _log.warning("Permissions are missing; add these RBAC rules:\n%s", rules_yaml(missing))
    return missing


def rules_yaml(permissions: Iterable[Permission]) -> str:
    """Write rules as they stand in a Role or ClusterRole."""
    text: str = yaml.safe_dump({"rules": rules_of(permissions)}, sort_keys=False, default_flow_style=None)
    return text


def _questions(permissions: set[Permission], namespaces: tuple[str, ...], leases: list[Key]) -> list[_Question]:
    everyday = permissions - set(LEASES) if leases else permissions
    asked = [_Question(one, namespace) for one in sorted(everyday) for namespace in namespaces or ("",)]
    for one in sorted(permissions - everyday):
        # What is created has no name yet when rights are looked at.
        asked += [_Question(one, lease.namespace, "" if one.verb == "create" else lease.name) for lease in leases]
    return asked


async def _is_allowed(client: Client, question: _Question) -> bool:
    permission = question.permission
    attributes = ResourceAttributes(
        group=permission.group,
        resource=permission.resource,
        subresource=permission.subresource or None,
        verb=permission.verb,
        namespace=question.namespace or None,
        name=question.name or None,
    )
    review = await client.create(
        SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    )
    return bool(review.status and review.status.allowed)
