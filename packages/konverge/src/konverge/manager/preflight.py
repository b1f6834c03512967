"""Preflight: before anything starts, check whether this process has the permissions that its controllers declare.

Missing permissions are logged once, at the start, as the RBAC rules to add, with their namespaces and the user, instead
of as one failure after the other. The check never fails the start: a permission may be granted later, and a server
without access reviews is tolerated.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import operator
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from konverge.client import Client
from konverge.controller import LEASES, Permission, rules_of
from konverge.errors import ApiError, Forbidden, KonvergeError
from konverge.k8s.authentication.v1 import SelfSubjectReview
from konverge.k8s.authorization.v1 import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec
from konverge.objects import Key

__all__ = ["log_failure", "missing_permissions", "rules_yaml", "warn_missing_permissions"]

_log = logging.getLogger("konverge.manager")

_MAX_IN_FLIGHT = 4


class _AccessCheck(NamedTuple):
    """A permission to check, in a namespace ("" is all) and for an object of that name ("" is any)."""

    permission: Permission
    namespace: str = ""
    name: str = ""


async def missing_permissions(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = (), leases: Iterable[Key] = ()
) -> dict[Permission, tuple[str, ...]] | None:
    """Return the missing permissions, each with the namespaces where it is missing; "" is the whole cluster.

    None when the server does not answer reviews.
    The permissions for leader election are checked for the `leases` only, not in every namespace.
    """
    checks = _checks(set(permissions), namespaces, list(leases))
    semaphore = asyncio.Semaphore(_MAX_IN_FLIGHT)  # held across each request, so that a start does not flood a server

    async def run(check: _AccessCheck) -> bool:
        async with semaphore:
            return await _is_allowed(client, check)

    try:
        # The first one alone: a server that answers no reviews gets only one.
        allowed = [await run(check) for check in checks[:1]]
        allowed += await asyncio.gather(*(run(check) for check in checks[1:]))
    except KonvergeError as error:
        if isinstance(error, ApiError) and not isinstance(error, Forbidden):
            _log.info("permission check skipped", extra={"reason": "the server answers no access reviews"})
        else:
            _log.warning("permission check failed", extra={"reason": str(error)})
        return None
    missing: dict[Permission, tuple[str, ...]] = {}
    for check in itertools.compress(checks, map(operator.not_, allowed)):
        missing[check.permission] = (*missing.get(check.permission, ()), check.namespace)
    return missing


async def warn_missing_permissions(
    client: Client, permissions: Iterable[Permission], *, namespaces: tuple[str, ...] = (), leases: Iterable[Key] = ()
) -> list[Permission]:
    """Check the permissions and log each missing RBAC rule, with its namespaces and the user that needs it."""
    missing = await missing_permissions(client, permissions, namespaces=namespaces, leases=leases) or {}
    user = await _username(client) if missing else ""
    for places in dict.fromkeys(missing.values()):
        where = "all" if "" in places else ", ".join(places)
        for rule in rules_yaml(one for one, found in missing.items() if found == places):
            fields = {"user": user, "namespaces": where, "rule": rule}
            _log.warning("permissions missing: add this RBAC rule", extra=fields)
    return list(missing)


async def _username(client: Client) -> str:
    """Return the user of this process as the server sees it; "" if an older one than 1.28 does not tell it."""
    try:
        user = (await client.create(SelfSubjectReview())).status.user_info
    except KonvergeError:
        return ""
    return (user.username or "") if user is not None else ""


async def log_failure(check: Callable[[], Awaitable[object]]) -> None:
    """Run a check that must not stop the process: its error is logged."""
    try:
        await check()
    except Exception:
        _log.exception("preflight check failed")


def rules_yaml(permissions: Iterable[Permission]) -> list[str]:
    """Return the rules of a Role or ClusterRole, each as one line of YAML."""
    import yaml  # only needed if a permission is missing

    return [
        yaml.safe_dump(rule, sort_keys=False, default_flow_style=True, width=math.inf).strip()
        for rule in rules_of(permissions)
    ]


def _checks(permissions: set[Permission], namespaces: tuple[str, ...], leases: list[Key]) -> list[_AccessCheck]:
    ordinary = permissions - set(LEASES) if leases else permissions
    checks = [_AccessCheck(one, namespace, one.name) for one in sorted(ordinary) for namespace in namespaces or ("",)]
    for one in sorted(permissions - ordinary):
        # RBAC cannot restrict create by name: the object has no name yet when the request is authorized.
        checks += [_AccessCheck(one, lease.namespace, "" if one.verb == "create" else lease.name) for lease in leases]
    return checks


async def _is_allowed(client: Client, check: _AccessCheck) -> bool:
    permission = check.permission
    attributes = ResourceAttributes(
        group=permission.group,
        resource=permission.resource,
        subresource=permission.subresource or None,
        verb=permission.verb,
        namespace=check.namespace or None,
        name=check.name or None,
    )
    review = await client.create(
        SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    )
    return bool(review.status and review.status.allowed)
