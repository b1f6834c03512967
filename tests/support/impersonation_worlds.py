"""Random rights to impersonate and requests that do, for tests that compare the embedded server with a real one."""

from __future__ import annotations

import random

from access_cases import GROUP, RBAC, Json
from access_rig import Ask
from access_worlds import World, random_world

__all__ = ["impersonating_world", "random_impersonations"]

_CALLERS = ("a", "b", "c")
_MODES = ("user-info", "serviceaccount", "arbitrary-node")
_EXTRA_KEYS = ("example.com/team", "scopes")
_AUTHENTICATION = "authentication.k8s.io"
_VERBS = (
    "impersonate",
    *(f"impersonate:{mode}" for mode in _MODES),
    *(f"impersonate-on:{mode}:{verb}" for mode in _MODES for verb in ("create", "list", "*")),
)
_RESOURCES = ("users", "groups", "serviceaccounts", "uids", "nodes", *(f"userextras/{key}" for key in _EXTRA_KEYS))
_REQUESTS: tuple[tuple[str, str, Json | None], ...] = (
    ("POST", f"/apis/{_AUTHENTICATION}/v1/selfsubjectreviews", {}),
    ("GET", "/api/v1/namespaces/{namespace}/pods", None),
    ("GET", "/healthz/ping", None),
)


def impersonating_world(number: int) -> World:
    """Return a world whose users may impersonate some of each other."""
    rng, world = random.Random(number), random_world(number)
    for index in range(7):
        name = world.name(f"impersonator{index}")
        rules = [_rule(rng, world) for _ in range(rng.randint(1, 5))]
        world.objects.append((f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}))
        subjects = [{"kind": "User", "name": world.name(rng.choice(_CALLERS)), "apiGroup": GROUP}]
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        namespaced = rng.random() < 0.2
        scope = f"namespaces/{rng.choice(world.namespaces)}/rolebindings" if namespaced else "clusterrolebindings"
        world.objects.append((f"{RBAC}/{scope}", body))
    return world


def random_impersonations(world: World, count: int) -> list[Ask]:
    """Return requests of users of a world that act as others."""
    rng = random.Random(world.number)
    return [_ask(rng, world) for _ in range(count)]


def _rule(rng: random.Random, world: World) -> Json:
    rule: Json = {"verbs": rng.sample(_VERBS, rng.randint(2, 8))}
    if rng.random() < 0.3:  # the request itself, or everything
        return rule | {"apiGroups": ["*"], "resources": ["*"]}
    rule |= {
        "apiGroups": rng.choice((["", _AUTHENTICATION], [""], [_AUTHENTICATION])),
        "resources": rng.sample(_RESOURCES, rng.randint(2, 7)),
    }
    if rng.random() < 0.3:
        rule["resourceNames"] = [world.name(rng.choice(_CALLERS)), rng.choice(_CALLERS)]
    return rule


def _ask(rng: random.Random, world: World) -> Ask:
    method, path, body = rng.choice(_REQUESTS)
    path = path.format(namespace=rng.choice(world.namespaces))
    return Ask(method, path, body, user=world.name(rng.choice(_CALLERS)), headers=_headers(rng, world))


def _headers(rng: random.Random, world: World) -> dict[str, str]:
    account = f"system:serviceaccount:{rng.choice(world.namespaces)}:{rng.choice(_CALLERS)}"
    user = world.name(rng.choice(_CALLERS))
    headers = {"Impersonate-User": rng.choice((user, user, account, f"system:node:{rng.choice(_CALLERS)}"))}
    if rng.random() < 0.3:
        groups = [world.name(name) for name in _CALLERS] + ["system:masters", "system:authenticated"]
        headers["Impersonate-Group"] = "\n".join(rng.sample(groups, rng.randint(1, 4)))
    if rng.random() < 0.1:
        headers["Impersonate-Uid"] = rng.choice(_CALLERS)
    if rng.random() < 0.15:
        key = rng.choice(_EXTRA_KEYS).replace("/", "%2F")
        headers[f"Impersonate-Extra-{key}"] = rng.choice(_CALLERS)
    if rng.random() < 0.03:
        del headers["Impersonate-User"]
    return headers
