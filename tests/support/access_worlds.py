"""Random roles, bindings and requests, for tests that compare the decisions of the embedded server with a real one.

The vocabulary is small, so that rules and requests often meet. Names end with the number of their world, so that the
worlds of a run do not affect each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from access_cases import GROUP, RBAC, Json

__all__ = [
    "World",
    "aggregated_world",
    "random_reviews",
    "random_world",
    "random_writes",
    "writer_world",
]

_VERBS = ("get", "list", "create", "delete", "*", "bind", "escalate")
_GROUPS = ("", "apps", "*", "example.com", GROUP)
_RESOURCES = ("pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*/log", "*", "pods/*", "secrets")
_NAMES = ("a", "b", "c")
_URLS = ("/healthz", "/healthz/*", "/x/*", "/x*", "*", "/", "/x/y")
_PATHS = ("/healthz", "/healthz/ping", "/x", "/x/y", "/x/y/z", "/", "/version")


@dataclass
class World:
    """Roles and bindings to create, each with its path."""

    number: int
    objects: list[tuple[str, Json]] = field(default_factory=list)

    def name(self, base: str) -> str:
        """Return a name of this world."""
        return f"{base}-{self.number}"

    @property
    def namespaces(self) -> tuple[str, str]:
        return self.name("shop"), self.name("bank")


def random_world(number: int) -> World:
    """Return the world of a number; the same number gives the same world."""
    rng, world = random.Random(number), World(number)
    roles = [world.name(f"role{index}") for index in range(4)]
    for name in roles[:3]:
        world.objects.append((f"{RBAC}/clusterroles", _role(rng, name, urls=True)))
        namespace = rng.choice(world.namespaces)
        world.objects.append((f"{RBAC}/namespaces/{namespace}/roles", _role(rng, name)))
    for index in range(9):
        world.objects.append(_binding(rng, world, f"binding{index}", rng.choice(roles)))
    return world


def random_reviews(world: World, count: int) -> list[Json]:
    """Return specs of SubjectAccessReviews about a world."""
    rng = random.Random(world.number)
    return [_review(rng, world) for _ in range(count)]


def aggregated_world(number: int) -> World:
    """Return a world with ClusterRoles that aggregate each other by labels."""
    rng, world = random.Random(number), random_world(number)
    for index in range(3):
        name = world.name(f"part{index}")
        part = _role(rng, name, urls=True)
        part["metadata"]["labels"] = {world.name("to"): rng.choice(_NAMES), world.name("also"): rng.choice(_NAMES)}
        world.objects.append((f"{RBAC}/clusterroles", part))
    for index in range(3):
        name = world.name(f"whole{index}")
        whole = {"metadata": {"name": name, "labels": {world.name("to"): rng.choice(_NAMES)}}, "rules": []}
        whole["aggregationRule"] = {"clusterRoleSelectors": [_selector(rng, world) for _ in range(rng.randint(1, 2))]}
        world.objects.append((f"{RBAC}/clusterroles", whole))
        world.objects.append(_binding(rng, world, f"whole{index}", name))
    return world


def _selector(rng: random.Random, world: World) -> Json:
    key = world.name(rng.choice(("to", "also")))
    if rng.random() < 0.7:
        return {"matchLabels": {key: rng.choice(_NAMES)}}
    return {"matchExpressions": [{"key": key, "operator": "In", "values": _some(rng, _NAMES, 2)}]}


def random_writes(world: World, count: int) -> list[tuple[str, str, Json]]:
    """Return user, path and body of roles and bindings that users of a world try to create, as dry runs."""
    rng = random.Random(world.number)
    return [_write(rng, world) for _ in range(count)]


def _write(rng: random.Random, world: World) -> tuple[str, str, Json]:
    if rng.random() < 0.5:
        namespaced = rng.random() < 0.5
        scope = f"namespaces/{rng.choice(world.namespaces)}/roles" if namespaced else "clusterroles"
        path, body = f"{RBAC}/{scope}", _role(rng, world.name("new"), urls=not namespaced)
        if not namespaced and rng.random() < 0.1:
            body["aggregationRule"] = {"clusterRoleSelectors": [_selector(rng, world)]}
    else:
        path, body = _binding(rng, world, "new", world.name(f"role{rng.randint(0, 3)}"))
    return world.name(rng.choice(_NAMES)), f"{path}?dryRun=All", body


def writer_world(number: int) -> World:
    """Return a world whose users may write roles and bindings, and some may escalate or bind."""
    rng, world = random.Random(number), random_world(number)
    rules: list[Json] = [{"verbs": ["create"], "apiGroups": [GROUP], "resources": ["*"]}]
    world.objects.append(_granted(world, "writer", rules, [world.name(name) for name in _NAMES]))
    for verb, resources in (("escalate", ("roles", "clusterroles")), ("bind", ("roles", "clusterroles", "*"))):
        rule: Json = {"verbs": [verb], "apiGroups": [rng.choice((GROUP, "*"))], "resources": [rng.choice(resources)]}
        if rng.random() < 0.5:
            rule["resourceNames"] = [world.name(f"role{rng.randint(0, 3)}")]
        world.objects.append(_granted(world, verb, [rule], [world.name(rng.choice(_NAMES))]))
    return world


def _granted(world: World, base: str, rules: list[Json], users: list[str]) -> tuple[str, Json]:
    name = world.name(base)
    world.objects.append((f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}))
    subjects = [{"kind": "User", "name": each, "apiGroup": GROUP} for each in users]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    return f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}


def _some(rng: random.Random, values: tuple[str, ...], most: int = 3) -> list[str]:
    return rng.sample(values, rng.randint(1, most))


def _rule(rng: random.Random, *, urls: bool = False) -> Json:
    if urls and rng.random() < 0.3:
        return {"verbs": _some(rng, ("get", "post", "*"), 2), "nonResourceURLs": _some(rng, _URLS)}
    rule: Json = {"verbs": _some(rng, _VERBS), "apiGroups": _some(rng, _GROUPS), "resources": _some(rng, _RESOURCES)}
    if rng.random() < 0.3:
        rule["resourceNames"] = _some(rng, _NAMES, 2)
    return rule


def _role(rng: random.Random, name: str, *, urls: bool = False) -> Json:
    rules = [_rule(rng, urls=urls) for _ in range(rng.randint(0, 4))]
    return {"metadata": {"name": name}, "rules": rules}


def _subject(rng: random.Random, world: World, *, namespaced: bool) -> Json:
    kind = rng.choice(("User", "User", "Group", "ServiceAccount"))
    if kind != "ServiceAccount":
        return {"kind": kind, "name": world.name(rng.choice(_NAMES)), "apiGroup": GROUP}
    subject: Json = {"kind": kind, "name": rng.choice(_NAMES)}
    if not namespaced or rng.random() < 0.6:
        subject["namespace"] = rng.choice(world.namespaces)
    return subject


def _binding(rng: random.Random, world: World, base: str, role: str) -> tuple[str, Json]:
    namespaced = rng.random() < 0.6
    kind = rng.choice(("Role", "ClusterRole")) if namespaced else "ClusterRole"
    subjects = [_subject(rng, world, namespaced=namespaced) for _ in range(rng.randint(1, 4))]
    scope = f"namespaces/{rng.choice(world.namespaces)}/rolebindings" if namespaced else "clusterrolebindings"
    body = {
        "metadata": {"name": world.name(base)},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": subjects,
    }
    return f"{RBAC}/{scope}", body


def _review(rng: random.Random, world: World) -> Json:
    spec: Json = {"user": _user(rng, world)}
    if rng.random() < 0.5:
        spec["groups"] = [world.name(name) for name in _some(rng, _NAMES, 2)]
    if rng.random() < 0.15:
        spec["nonResourceAttributes"] = {"verb": rng.choice(("get", "post")), "path": rng.choice(_PATHS)}
    else:
        spec["resourceAttributes"] = dict(_resource_attributes(rng, world))
    return spec


def _user(rng: random.Random, world: World) -> str:
    if rng.random() < 0.3:
        return f"system:serviceaccount:{rng.choice(world.namespaces)}:{rng.choice(_NAMES)}"
    return world.name(rng.choice(_NAMES))


def _resource_attributes(rng: random.Random, world: World) -> Iterator[tuple[str, Any]]:
    yield "verb", rng.choice(("get", "get", "list", "create", "watch"))
    group = rng.choice(("", "", "apps", "apps", "example.com", "other"))
    if group:
        yield "group", group
    resource, _, subresource = rng.choice(
        ("pods", "pods/log", "deployments", "deployments/scale", "things/scale", "secrets", "things")
    ).partition("/")
    yield "resource", resource
    if subresource:
        yield "subresource", subresource
    if rng.random() < 0.7:
        yield "namespace", rng.choice(world.namespaces)
    if rng.random() < 0.5:
        yield "name", rng.choice((*_NAMES, "d"))
