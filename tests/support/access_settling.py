"""Grant rights on a server, and wait until it decides by them: the real one reads roles and bindings from watches."""

from __future__ import annotations

import itertools

from access_cases import AUTHORIZATION, RBAC, Json, binding, role, rule, user
from two_servers import Api

__all__ = ["grant", "wait_for_access"]

_counter = itertools.count(1)
_ATTEMPTS = 500


def grant(api: Api, name: str, *rules: Json) -> None:
    """Bind a user to a new ClusterRole of the same name."""
    made = [
        api.request("POST", f"{RBAC}/clusterroles", role(name, *rules)),
        api.request("POST", f"{RBAC}/clusterrolebindings", binding(name, name, user(name))),
    ]
    assert [reply.status for reply in made] == [201, 201], [reply.body for reply in made]


def wait_for_access(api: Api) -> None:
    """Wait until decisions include every role and binding that was written before.

    Each of the four kinds has a watch of its own. A new object of each kind is written last and asked about.
    """
    name = f"settled-{api.namespace}-{next(_counter)}"
    grant(api, name, rule("get", "pods"))
    space = f"{RBAC}/namespaces/{api.namespace}"
    api.request("POST", f"{space}/roles", role(name, rule("list", "pods")))
    api.request("POST", f"{space}/rolebindings", binding(name, name, user(name), kind="Role"))
    for verb in ("get", "list"):
        attributes = {"verb": verb, "resource": "pods", "namespace": api.namespace}
        body = {"spec": {"user": name, "resourceAttributes": attributes}}
        for _ in range(_ATTEMPTS):
            if api.request("POST", f"{AUTHORIZATION}/subjectaccessreviews", body).json()["status"]["allowed"]:
                break
        else:
            raise AssertionError(f"{api.name}: {name} may not {verb} pods after {_ATTEMPTS} reviews")
    for path in (f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings", f"{space}/roles", f"{space}/rolebindings"):
        api.request("DELETE", f"{path}/{name}")
