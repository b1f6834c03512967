"""The RBAC authorizer: a request is allowed when a rule that is granted to its user allows it."""

from __future__ import annotations

from typing import Final

from konverge_cluster.api.authorization import Attributes, Decision, UserInfo
from konverge_cluster.authorization.policies import Grant, Policies
from konverge_cluster.authorization.rules import Rule
from konverge_cluster.storage import Storage

__all__ = ["MASTERS", "RbacAuthorizer", "joined"]

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever roles there are."""

_CACHED_USERS: Final = 1000
_CACHED_REQUESTS: Final = 1000
_ALLOWED: Final = Decision(allowed=True)
_NO_OPINION: Final = Decision(allowed=False)

_Choice = tuple[tuple[str, ...], Decision]
"""A decision for requests to objects with these names; () is any."""


class RbacAuthorizer:
    """Decides by the roles and bindings in storage.

    Promises: a decision sees every stored change, reads memory only, and its reason has the text of the real server.
    """

    def __init__(self, storage: Storage) -> None:
        self.policies = Policies(storage)
        self._users: dict[tuple[str, tuple[str, ...]], _UserIndex] = {}

    def authorize(self, attributes: Attributes) -> Decision:
        """Decide whether a request is allowed. What a user may do is indexed until a role or a binding changes."""
        user = attributes.user
        if MASTERS in user.groups:
            return _ALLOWED
        index = self._users.get((user.name, user.groups))
        if index is None or index.revision != self.policies.revision:
            index = self._new_index(user)
        return index.authorize(attributes)

    def _new_index(self, user: UserInfo) -> _UserIndex:
        if len(self._users) >= _CACHED_USERS:
            self._users.clear()
        index = self._users[user.name, user.groups] = _UserIndex(self.policies, user)
        return index

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return the rules that are granted to a user, and the errors of bindings without a role."""
        grants = self.policies.grants(user, namespace)
        return [rule for grant in grants for rule in grant.rules], [grant.error for grant in grants if grant.error]


class _UserIndex:
    """What one user may do, by namespace, verb and resource.

    Namespaces without bindings of the user share one entry, and so do objects: their names are compared with those of
    the rules. So a request is looked up, whatever object it names, once its verb and resource have been decided.
    """

    def __init__(self, policies: Policies, user: UserInfo) -> None:
        self.revision = policies.revision
        self._policies = policies
        self._user = user
        self._namespaces = policies.namespaces(user)
        self._choices: dict[tuple[str, ...], tuple[_Choice, ...]] = {}

    def authorize(self, attributes: Attributes) -> Decision:
        """Decide whether a request of this user is allowed."""
        namespace = attributes.namespace if attributes.namespace in self._namespaces else ""
        key: tuple[str, ...]
        if attributes.resource_request:
            key = (namespace, attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        else:
            key = (namespace, attributes.verb, attributes.path)
        choices = self._choices.get(key)
        if choices is None:
            if len(self._choices) >= _CACHED_REQUESTS:
                self._choices.clear()
            choices = self._choices[key] = _choices(self._policies.grants(self._user, namespace), attributes)
        for names, decision in choices:
            if not names or attributes.name in names:
                return decision
        return _NO_OPINION


def _choices(grants: tuple[Grant, ...], attributes: Attributes) -> tuple[_Choice, ...]:
    """Return the decisions about a request for any object name; the first that has the name counts."""
    choices: list[_Choice] = []
    for grant in grants:
        for rule in grant.rules:
            if rule.allows_any_name(attributes):
                names = rule.names if attributes.resource_request else ()
                choices.append((names, Decision(allowed=True, reason=f"RBAC: allowed by {grant.source}")))
                if not names:
                    return tuple(choices)
    if errors := [grant.error for grant in grants if grant.error]:
        choices.append(((), Decision(allowed=False, reason=f"RBAC: {joined(errors)}")))
    return tuple(choices)


def joined(errors: list[str]) -> str:
    """Return the text of several errors; equal ones occur once."""
    texts = list(dict.fromkeys(errors))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
