"""The roles and bindings of a cluster, indexed by subject and kept up to date with storage.

Every change is applied when it is stored, so that a decision reads memory only. What a user is granted in a namespace
is resolved once, and again after a role or a binding has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from konverge_cluster.api.authorization import UserInfo
from konverge_cluster.api.cluster import decode
from konverge_cluster.api.field_errors import quote
from konverge_cluster.authorization.rules import Rule
from konverge_cluster.storage import DELETED, Collection, Storage

__all__ = ["GROUP", "Grant", "Policies", "RoleNotFound"]

GROUP: Final = "rbac.authorization.k8s.io"
_CACHED_USERS: Final = 1000

Name = tuple[str, str]
"""Namespace and name; the namespace is "" for cluster-scoped objects."""


class RoleNotFound(LookupError):
    """A binding refers to a role that does not exist; `kind` is Role or ClusterRole."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{GROUP} {quote(name)} not found")
        self.kind = kind
        self.name = name


@dataclass(frozen=True, slots=True)
class Grant:
    """What one binding grants to a user: the rules of its role, or the error when there is no such role.

    `source` describes the binding and the subject, as in the reason of a decision. `role` is the name of the role.
    """

    source: str
    role: str
    rules: tuple[Rule, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A subject: `key` is "User" or "Group" and a name, None for a subject that matches nobody."""

    key: tuple[str, str] | None
    text: str


@dataclass(frozen=True, slots=True)
class _Binding:
    source: str
    role: tuple[str, str]
    subjects: tuple[_Subject, ...]


class Policies:
    """The roles and bindings in storage.

    Promises: `grants` includes every stored change. Cluster role bindings come first, each part in the order of names.
    `revision` is another number after every change.
    """

    def __init__(self, storage: Storage) -> None:
        self.revision = 0
        self._roles: dict[tuple[str, str, str], tuple[Rule, ...]] = {}
        self._bindings: dict[Name, _Binding] = {}
        self._by_subject: dict[tuple[str, str], dict[str, set[Name]]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], tuple[Grant, ...]] = {}
        for plural, put, remove in (
            ("clusterroles", self._put_role, self._remove_role),
            ("roles", self._put_role, self._remove_role),
            ("clusterrolebindings", self._put_binding, self._remove_binding),
            ("rolebindings", self._put_binding, self._remove_binding),
        ):
            _StoredObjects(storage, storage.collection((GROUP, plural)), put, remove)

    def grants(self, user: UserInfo, namespace: str) -> tuple[Grant, ...]:
        """Return what bindings grant to a user: those of the cluster, and those in a namespace unless it is ""."""
        cache_key = (user.name, user.groups, namespace)
        found = self._grants.get(cache_key)
        if found is None:
            if len(self._grants) >= _CACHED_USERS:
                self._grants.clear()
            found = self._grants[cache_key] = tuple(self._resolve(user, namespace))
        return found

    def namespaces(self, user: UserInfo) -> frozenset[str]:
        """Return the namespaces with a binding of a user."""
        return frozenset(space for key in _keys(user) for space in self._by_subject.get(key, ()) if space)

    def role_rules(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...]:
        """Return the rules of a role.

        Raises: RoleNotFound.
        """
        try:
            return self._roles[kind, namespace if kind == "Role" else "", name]
        except KeyError:
            raise RoleNotFound(kind, name) from None

    def _resolve(self, user: UserInfo, namespace: str) -> Iterable[Grant]:
        keys = _keys(user)
        for scope in ("", namespace) if namespace else ("",):
            names = {name for key in keys for name in self._by_subject.get(key, {}).get(scope, ())}
            for name in sorted(names):
                yield self._grant(self._bindings[name], scope, keys)

    def _grant(self, binding: _Binding, namespace: str, keys: set[tuple[str, str]]) -> Grant:
        subject = next(each for each in binding.subjects if each.key in keys)
        source = f"{binding.source} to {subject.text}"
        try:
            return Grant(source, binding.role[1], self.role_rules(*binding.role, namespace))
        except RoleNotFound as error:
            return Grant(source, binding.role[1], error=str(error))

    def _changed(self) -> None:
        self.revision += 1
        self._grants.clear()

    def _put_role(self, name: Name, role: dict[str, Any]) -> None:
        rules = tuple(Rule.read(each) for each in role.get("rules") or ())
        self._roles["Role" if name[0] else "ClusterRole", *name] = rules
        self._changed()

    def _remove_role(self, name: Name) -> None:
        self._roles.pop(("Role" if name[0] else "ClusterRole", *name), None)
        self._changed()

    def _put_binding(self, name: Name, document: dict[str, Any]) -> None:
        self._remove_binding(name)
        binding = self._bindings[name] = _read_binding(name, document)
        for subject in binding.subjects:
            if subject.key is not None:
                self._by_subject.setdefault(subject.key, {}).setdefault(name[0], set()).add(name)

    def _remove_binding(self, name: Name) -> None:
        old = self._bindings.pop(name, None)
        for subject in old.subjects if old is not None else ():
            if subject.key is not None:
                self._forget(subject.key, name)
        self._changed()

    def _forget(self, subject: tuple[str, str], name: Name) -> None:
        """Remove a binding from its subject, and the subject when it has no other; it may be listed twice."""
        spaces = self._by_subject.get(subject, {})
        names = spaces.get(name[0], set())
        names.discard(name)
        if not names:
            spaces.pop(name[0], None)
        if not spaces:
            self._by_subject.pop(subject, None)


def _keys(user: UserInfo) -> set[tuple[str, str]]:
    return {("User", user.name), *(("Group", group) for group in user.groups)}


def _read_binding(name: Name, document: dict[str, Any]) -> _Binding:
    namespace, own_name = name
    role = document["roleRef"]
    kind, shown = ("RoleBinding", f"{own_name}/{namespace}") if namespace else ("ClusterRoleBinding", own_name)
    source = f"{kind} {quote(shown)} of {role['kind']} {quote(role['name'])}"
    subjects = tuple(_read_subject(each, namespace) for each in document.get("subjects") or ())
    return _Binding(source, (role["kind"], role["name"]), subjects)


def _read_subject(subject: dict[str, Any], namespace: str) -> _Subject:
    kind, name = subject["kind"], subject["name"]
    if kind != "ServiceAccount":
        return _Subject((kind, name) if kind in ("User", "Group") else None, f"{kind} {quote(name)}")
    namespace = subject.get("namespace") or namespace
    key = ("User", f"system:serviceaccount:{namespace}:{name}") if namespace else None
    return _Subject(key, f"{kind} {quote(f'{name}/{namespace}')}")


class _StoredObjects:
    """Applies every change of one collection: `put` for a new state, `remove` for a deletion."""

    def __init__(
        self,
        storage: Storage,
        collection: Collection,
        put: Callable[[Name, dict[str, Any]], None],
        remove: Callable[[Name], None],
    ) -> None:
        self._storage = storage
        self._collection = collection
        self._put = put
        self._remove = remove
        self._names: set[Name] = set()
        self._position = 0
        self._load()
        collection.subscribe(self, self._handle_changes)

    def _load(self) -> None:
        """Start from the current state: at first, and when the history does not have the latest changes."""
        entries = self._collection.entries()
        for name in self._names - {_name_of(entry.key) for entry in entries}:
            self._apply(name, None)
        for entry in entries:
            self._apply(_name_of(entry.key), entry.raw)
        self._position = self._collection.position_after(self._storage.revision)

    def _handle_changes(self) -> None:
        changes = self._collection.changes_from(self._position)
        if changes is None:
            self._load()
            return
        self._position += len(changes)
        for change in changes:
            self._apply(_name_of(change.entry.key), None if change.kind == DELETED else change.entry.raw)

    def _apply(self, name: Name, raw: bytes | None) -> None:
        if raw is None:
            self._names.discard(name)
            self._remove(name)
        else:
            self._names.add(name)
            self._put(name, decode(raw))


def _name_of(key: str) -> Name:
    namespace, _, name = key.rpartition("/")
    return namespace, name
