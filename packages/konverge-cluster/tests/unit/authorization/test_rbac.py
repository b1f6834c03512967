"""RBAC: decisions follow the stored roles and bindings, also when these change and the history is short."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from konverge_cluster.api.authorization import Attributes, Decision, UserInfo
from konverge_cluster.authorization import RbacAuthorizer
from konverge_cluster.storage import Entry, Storage

GROUP = "rbac.authorization.k8s.io"
READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


class World:
    """A storage with roles and bindings, and the authorizer on it."""

    def __init__(self, history: int = 100) -> None:
        self.storage = Storage(history=history)
        self.authorizer = RbacAuthorizer(self.storage)

    def role(self, key: str, *rules: dict[str, Any]) -> None:
        self._put("roles" if "/" in key else "clusterroles", key, {"rules": list(rules) or None})

    def bind(self, key: str, role: str, *subjects: str) -> None:
        """Bind subjects such as "User:bob" and "ServiceAccount:ns/name" to a role such as "ClusterRole:view"."""
        kind, _, name = role.partition(":")
        document = {"roleRef": {"kind": kind, "name": name}, "subjects": [_subject(each) for each in subjects]}
        self._put("rolebindings" if "/" in key else "clusterrolebindings", key, document)

    def delete(self, plural: str, key: str) -> None:
        last = Entry(key, b"{}", self.storage.next_revision, "uid")
        self.storage.delete(self.storage.collection((GROUP, plural)), last)

    def _put(self, plural: str, key: str, document: dict[str, Any]) -> None:
        entry = Entry(key, msgspec.json.encode(document), self.storage.next_revision, "uid")
        self.storage.put(self.storage.collection((GROUP, plural)), entry)

    def ask(self, user: str = "bob", *groups: str, namespace: str = "shop") -> Decision:
        """Ask whether a user may get pods."""
        info = UserInfo(user, groups)
        return self.authorizer.authorize(Attributes(info, "get", "", "", "v1", "pods", namespace=namespace))

    def change(self, rng: random.Random, number: int) -> None:
        """Write a role and a binding, by chance with names, missing roles and a namespace."""
        names = {"resourceNames": rng.sample(["a", "b", "c"], 2)} if rng.random() < 0.5 else {}
        rules = [
            {"verbs": [rng.choice(["get", "*"])], "apiGroups": [""], "resources": [rng.choice(["pods", "*"])]} | names,
            {"verbs": ["get"], "nonResourceURLs": [rng.choice(["/x", "/x/*", "*"])]},
        ]
        space = rng.choice(["", "shop/", "bank/"])
        role = f"role-{rng.randint(0, 5)}"
        self.role(f"{space}{role}", *rng.sample(rules, rng.randint(0, 2)))
        kind = rng.choice(["Role", "ClusterRole"]) if space else "ClusterRole"
        subject = rng.choice(["User:bob", "Group:devs", "User:ann"])
        self.bind(f"{space}binding-{number % 9}", f"{kind}:{role}", subject)


USERS: tuple[tuple[str, tuple[str, ...]], ...] = (("bob", ()), ("ann", ("devs",)), ("eve", ()))
REQUESTS: tuple[dict[str, Any], ...] = (
    *(
        {"verb": verb, "resource": resource, "namespace": namespace, "name": name}
        for verb in ("get", "list")
        for resource in ("pods", "secrets")
        for namespace in ("", "shop", "bank", "home")
        for name in ("", "a", "b", "d")
    ),
    *({"verb": "get", "path": path, "resource_request": False} for path in ("/x", "/x/y", "/z")),
)


def _subject(text: str) -> dict[str, str]:
    kind, _, name = text.partition(":")
    namespace, _, name = name.rpartition("/")
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


@pytest.mark.parametrize(
    ("subject", "user", "groups"),
    [
        ("User:bob", "bob", ()),
        ("Group:devs", "bob", ("devs",)),
        ("ServiceAccount:shop/web", "system:serviceaccount:shop:web", ()),
    ],
)
def test_each_kind_of_subject_is_matched(subject: str, user: str, groups: tuple[str, ...]) -> None:
    world = World()
    world.role("reader", READ)
    world.bind("reading", "ClusterRole:reader", subject)

    assert world.ask(user, *groups).allowed
    assert not world.ask("somebody", "else").allowed


def test_a_role_binding_is_limited_to_its_namespace() -> None:
    world = World()
    world.role("reader", READ)
    world.bind("shop/reading", "ClusterRole:reader", "User:bob")

    assert world.ask(namespace="shop").allowed
    assert not world.ask(namespace="bank").allowed
    assert not world.ask(namespace="").allowed


def test_a_service_account_without_a_namespace_is_one_of_the_binding_s_namespace() -> None:
    world = World()
    world.role("reader", READ)
    world.bind("shop/reading", "ClusterRole:reader", "ServiceAccount:web")
    world.bind("reading", "ClusterRole:reader", "ServiceAccount:web")

    assert world.ask("system:serviceaccount:shop:web").allowed
    assert not world.ask("system:serviceaccount:bank:web", namespace="bank").allowed
    assert not world.ask("system:serviceaccount::web").allowed


def test_the_reason_names_binding_role_and_the_first_subject_that_matches() -> None:
    world = World()
    world.role("shop/reader", READ)
    world.bind("shop/reading", "Role:reader", "User:ann", "Group:devs", "User:bob")

    expected = 'RBAC: allowed by RoleBinding "reading/shop" of Role "reader" to Group "devs"'
    assert world.ask("bob", "devs").reason == expected


def test_a_denial_names_roles_that_do_not_exist_each_once() -> None:
    world = World()
    for name in ("a", "b"):
        world.bind(name, "ClusterRole:missing", "User:bob")
    world.bind("shop/c", "Role:gone", "User:bob")

    texts = (
        'clusterrole.rbac.authorization.k8s.io "missing" not found',
        'role.rbac.authorization.k8s.io "gone" not found',
    )
    assert world.ask().reason == f"RBAC: [{', '.join(texts)}]"
    assert world.ask("ann") == Decision(allowed=False)


def test_masters_are_allowed_everything_without_a_reason() -> None:
    assert World().ask("root", "system:masters") == Decision(allowed=True)


@pytest.mark.parametrize("history", [100, 0])
def test_every_change_of_a_role_or_a_binding_changes_decisions_at_once(history: int) -> None:
    world = World(history)
    world.bind("reading", "ClusterRole:reader", "User:bob")
    assert not world.ask().allowed

    world.role("reader", READ)
    assert world.ask().allowed

    world.role("reader")
    assert not world.ask().allowed

    world.role("reader", READ)
    world.bind("reading", "ClusterRole:reader", "User:ann")
    assert (world.ask("bob").allowed, world.ask("ann").allowed) == (False, True)

    world.delete("clusterrolebindings", "reading")
    assert not world.ask("ann").allowed


def test_a_decision_does_not_depend_on_earlier_ones() -> None:
    """What was decided is indexed without the names of objects, and shared by namespaces without bindings."""
    rng = random.Random(1)
    world = World()
    everything = [Attributes(UserInfo(user, groups), **each) for user, groups in USERS for each in REQUESTS]
    for step in range(60):
        world.change(rng, step)
        asked = rng.sample(everything, 200)
        fresh = [RbacAuthorizer(world.storage).authorize(each) for each in asked[-4:]]
        assert [world.authorizer.authorize(each) for each in asked][-4:] == fresh
    assert {world.authorizer.authorize(each).allowed for each in everything} == {True, False}


def test_an_authorizer_reads_what_was_stored_before_it_started() -> None:
    world = World()
    world.role("reader", READ)
    world.bind("reading", "ClusterRole:reader", "User:bob")

    world.authorizer = RbacAuthorizer(world.storage)

    assert world.ask().allowed
