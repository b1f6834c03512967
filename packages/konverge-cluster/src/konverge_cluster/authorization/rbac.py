"""The RBAC authorizer: a request is allowed when a rule that is granted to its user allows it."""

from __future__ import annotations

from typing import Final

from konverge_cluster.api.authorization import Attributes, Decision, UserInfo
from konverge_cluster.authorization.policies import Policies
from konverge_cluster.authorization.rules import Rule
from konverge_cluster.storage import Storage

__all__ = ["MASTERS", "RbacAuthorizer", "joined"]

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever roles there are."""

_CACHED_DECISIONS: Final = 10_000
_ALLOWED: Final = Decision(allowed=True)
_NO_OPINION: Final = Decision(allowed=False)


class RbacAuthorizer:
    """Decides by the roles and bindings in storage.

    Promises: a decision sees every stored change, reads memory only, and its reason has the text of the real server.
    """

    def __init__(self, storage: Storage) -> None:
        self.policies = Policies(storage)
        self._decisions: dict[tuple[object, ...], Decision] = {}
        self._revision = self.policies.revision

    def authorize(self, attributes: Attributes) -> Decision:
        """Decide whether a request is allowed. A decision is cached until a role or a binding changes."""
        user = attributes.user
        if MASTERS in user.groups:
            return _ALLOWED
        if self._revision != self.policies.revision or len(self._decisions) >= _CACHED_DECISIONS:
            self._decisions.clear()
            self._revision = self.policies.revision
        # Everything that a rule looks at. A dataclass would be hashed more slowly, and user.extra cannot be.
        cache_key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
            None if attributes.resource_request else attributes.path,
        )
        decision = self._decisions.get(cache_key)
        if decision is None:
            decision = self._decisions[cache_key] = self._decide(attributes)
        return decision

    def _decide(self, attributes: Attributes) -> Decision:
        errors = []
        for grant in self.policies.grants(attributes.user, attributes.namespace):
            for rule in grant.rules:
                if rule.allows(attributes):
                    return Decision(allowed=True, reason=f"RBAC: allowed by {grant.source}")
            if grant.error:
                errors.append(grant.error)
        return Decision(allowed=False, reason=f"RBAC: {joined(errors)}") if errors else _NO_OPINION

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return the rules that are granted to a user, and the errors of bindings without a role."""
        grants = self.policies.grants(user, namespace)
        return [rule for grant in grants for rule in grant.rules], [grant.error for grant in grants if grant.error]


def joined(errors: list[str]) -> str:
    """Return the text of several errors; equal ones occur once."""
    texts = list(dict.fromkeys(errors))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
