"""Escalation checks: nobody grants rights that he does not have.

A role may contain only rules that its writer holds, unless he has the verb `escalate` on roles. A binding may refer
only to a role whose rules its writer holds, unless he has the verb `bind` on that role. Both are checked after mutating
admission and before validation, as on the real server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.authorization import Attributes, UserInfo
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document
from konverge_cluster.authorization.policies import GROUP, RoleNotFound
from konverge_cluster.authorization.rbac import MASTERS, RbacAuthorizer, joined
from konverge_cluster.authorization.rules import ALL_RESOURCES, ALL_URLS, Rule, compact, uncovered

__all__ = ["EscalationCheck"]

_ROLES: Final = ("roles", "clusterroles")
_BINDINGS: Final = ("rolebindings", "clusterrolebindings")
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_GARBAGE_FIELDS: Final = ("ownerReferences", "finalizers", "managedFields")


class EscalationCheck:
    """Rejects roles and bindings that grant more than their writer may do.

    Promise: a write that changes only what garbage collection changes (owners, finalizers) is never rejected.
    """

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def handles(self, request: AdmissionRequest) -> bool:
        kind = request.strategy.info.kind
        return kind.group == GROUP and request.object is not None and MASTERS not in request.user.groups

    async def mutate(self, request: AdmissionRequest) -> None:
        """Check a write, in its state after all other plug-ins.

        Raises: StatusError 403, or 404 for a binding to a role that does not exist.
        """
        plural, new = request.strategy.info.kind.plural, request.object
        assert new is not None
        if request.old_object is not None and _only_garbage_fields_changed(new, request.old_object):
            return
        if plural in _ROLES:
            self._check_role(request, new)
        elif plural in _BINDINGS:
            self._check_binding(request, new)

    async def validate(self, request: AdmissionRequest) -> None:
        """Accept every request: `mutate` has checked it."""

    def _check_role(self, request: AdmissionRequest, role: Document) -> None:
        plural = request.strategy.info.kind.plural
        # A rule for names does not apply to POST, whose path has none.
        name = "" if request.verb == "create" else request.name
        if self._may(request.user, "escalate", plural, request.namespace, name):
            return
        self._check_owned(request, role, [Rule.read(each) for each in role.get("rules") or ()])
        if _is_aggregated(role) or _is_aggregated(request.old_object):
            owned, _ = self._authorizer.rules_for(request.user, request.namespace)
            if uncovered((ALL_RESOURCES, ALL_URLS), owned):
                raise _forbidden(request, role, "must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, request: AdmissionRequest, binding: Document) -> None:
        kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        plural = _PLURALS.get(kind)
        if plural is None:
            raise status_errors.failure(500, f"unsupported role reference kind: {quote(kind)}")
        if self._may(request.user, "bind", plural, request.namespace, name):
            return
        try:
            rules = self._authorizer.policies.role_rules(kind, name, request.namespace)
        except RoleNotFound:
            # The real server names the resource of the request instead of that of the role.
            raise status_errors.not_found(GROUP, request.strategy.info.kind.plural, name) from None
        self._check_owned(request, binding, rules)

    def _may(self, user: UserInfo, verb: str, plural: str, namespace: str, name: str) -> bool:
        attributes = Attributes(user, verb, "", GROUP, "*", plural, namespace=namespace, name=name)
        return self._authorizer.authorize(attributes).allowed

    def _check_owned(self, request: AdmissionRequest, document: Document, needed: Iterable[Rule]) -> None:
        grants = self._authorizer.policies.grants(request.user, request.namespace)
        missing = uncovered(needed, [rule for grant in grants for rule in grant.rules])
        if not missing:
            return
        groups = " ".join(map(quote, request.user.groups))
        text = f"user {quote(request.user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions"
        listed = "\n".join(sorted({str(rule) for rule in compact(missing)}))
        text = f"{text} not currently held:\n{listed}"
        plural = request.strategy.info.kind.plural
        errors = [f"{plural}.{GROUP} {quote(grant.role)} not found" for grant in grants if grant.error]
        raise _forbidden(request, document, f"{text}; resolution errors: [{joined(errors)}]" if errors else text)


def _forbidden(request: AdmissionRequest, document: Document, text: str) -> StatusError:
    kind = request.strategy.info.kind
    return status_errors.forbidden(kind.group, kind.plural, document["metadata"].get("name", ""), text)


def _is_aggregated(role: Document | None) -> bool:
    return bool(((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_garbage_fields_changed(new: Document, old: Document) -> bool:
    return _without_garbage_fields(new) == _without_garbage_fields(old)


def _without_garbage_fields(document: Document) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name not in _GARBAGE_FIELDS}
    return document | {"metadata": metadata}
