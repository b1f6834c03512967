"""S3: the generated permissions are exactly those that the operator uses."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from konverge.controller import Permission
from konverge.manager import LeaderElection
from konverge.testing.faults import RecordedRequest
from konverge_operators.manifests import HTTP_ROUTE, POD_MONITOR
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.operator import operator
from webapp_scenarios import run_user_steps
from webapps import WebAppEnvironment, optional_crd, webapp, webapp_environment

UNSEEN = {
    # Checked by the admission of owner references, not by a request.
    Permission("example.com", "webapps", "finalizers", "update"),
}


def is_implied(right: Permission, needed: set[Permission]) -> bool:
    """Report whether a permission belongs to one that was used.

    An apply that creates is recorded as a patch; a server that does not stream lists is listed; after a conflict of a
    finalizer patch the object is read again.
    """
    companions = {"create": "patch", "list": "watch", "get": "patch"}
    return replace(right, verb=companions.get(right.verb, "none")) in needed


def right_for(asked: RecordedRequest) -> Permission | None:
    """Return the permission that a request needs; None for those that every account has."""
    steps = asked.path.strip("/").split("/")
    core = steps[0] == "api"
    rest = steps[2:] if core else steps[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest or "accessreviews" in asked.path:
        return None  # discovery and self subject access reviews
    resource, name, subresource = (*rest, "", "")[:3]
    verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(asked.method, "")
    if not verb:
        verb = "watch" if asked.watches else "get" if name else "list"
    return Permission("" if core else steps[1], resource, subresource, verb)


async def used() -> set[Permission]:
    """Run the operator through the scenario, and return the permissions that it needed."""
    async with webapp_environment() as env:
        for kind in (HTTP_ROUTE, POD_MONITOR):
            await env.client.create(optional_crd(kind))
        election = LeaderElection("webapp-operator", "default", clock=asyncio.get_running_loop().time)
        async with env.operating(leader_election=election):
            await run_user_steps(env)
            await _use_options(env)
            await asyncio.sleep(60)
        found = {right_for(asked) for asked in env.transport.script.requests()}
        return {one for one in found if one is not None}


async def _use_options(env: WebAppEnvironment) -> None:
    """Use and remove what an application can have besides."""
    references = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}]
    gateway = {"host": "a.example.com", "gateway": {"name": "public"}}
    await env.client.create(webapp("more", envFrom=references, monitoring={}, ingress=gateway))
    await env.reaches(Phase.READY, "more")
    await env.change("more", monitoring=None, ingress=None)
    await env.reaches(Phase.READY, "more")
    await env.client.delete(WebApp, "more")


async def test_the_generated_permissions_are_those_that_are_used() -> None:
    needed, given = await used(), set(operator.permissions())
    assert needed - given == set(), "used without a permission"
    idle = {right for right in given - needed if not is_implied(right, needed)}
    assert idle == UNSEEN, "granted and never used"
