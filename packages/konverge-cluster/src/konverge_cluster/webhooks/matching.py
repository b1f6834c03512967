"""Matching of webhooks: whether a webhook is called for a write, and with which version of the resource.

A webhook is called when its selectors match the namespace and the object, and a rule matches the request. With match
policy Equivalent a rule may also match another served version of the same resource; the webhook then receives the
object in that version.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.webhooks.configurations import GROUP, Rule, Webhook

__all__ = ["Invocation", "is_exempt", "match", "namespace_of"]

_EXEMPT = {
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook to call, and the version of the resource that it receives."""

    webhook: Webhook
    strategy: Strategy


def is_exempt(request: AdmissionRequest) -> bool:
    """Report whether no webhook is called for this write; otherwise a webhook could forbid its own removal."""
    kind = request.strategy.info.kind
    return kind.group == GROUP and kind.kind in _EXEMPT


def namespace_of(request: AdmissionRequest) -> str:
    """Return the namespace of a write; for a write to a namespace, its own name."""
    return request.namespace or (request.name if _is_namespace(request.strategy) else "")


def match(cluster: Cluster, webhook: Webhook, request: AdmissionRequest, current: Document | None) -> Invocation | None:
    """Return how to call a webhook for a write, None when it is not called. `current` is the current new object.

    Raises: StatusError 404 when the namespace selector applies to a namespace that does not exist.
    """
    missing: StatusError | None = None
    try:
        if not _namespace_selected(cluster, webhook, request, current):
            return None
    except StatusError as error:
        # A webhook whose rules do not match must not fail the request.
        missing = error
    if not _object_selected(webhook, current, request.old_object):
        return None
    strategy = _matched_version(cluster, webhook, request)
    if strategy is None:
        return None
    if missing is not None:
        raise missing
    return Invocation(webhook, strategy)


def _is_namespace(strategy: Strategy) -> bool:
    return strategy.info.kind.group == "" and strategy.info.kind.plural == "namespaces"


def _namespace_selected(
    cluster: Cluster, webhook: Webhook, request: AdmissionRequest, current: Document | None
) -> bool:
    if not webhook.namespaces.requirements:
        return True
    if _is_namespace(request.strategy) and not request.subresource and current is not None:
        return webhook.namespaces.matches(current["metadata"].get("labels"))
    name = namespace_of(request)
    if not name:
        return True
    namespace = cluster.lookup("", "namespaces", "", name)
    if namespace is None:
        raise status_errors.not_found("", "namespaces", name)
    return webhook.namespaces.matches(namespace["metadata"].get("labels"))


def _object_selected(webhook: Webhook, new: Document | None, old: Document | None) -> bool:
    if not webhook.objects.requirements:
        return True
    found = [each for each in (new, old) if each is not None]
    return any(webhook.objects.matches(each.get("metadata", {}).get("labels")) for each in found)


def _matched_version(cluster: Cluster, webhook: Webhook, request: AdmissionRequest) -> Strategy | None:
    if any(_rule_matches(rule, request, request.strategy) for rule in webhook.rules):
        return request.strategy
    if not webhook.equivalent:
        return None
    others = _equivalent_versions(cluster, request)
    # The first rule that matches any version decides, not the first version.
    matching = (other for rule in webhook.rules for other in others if _rule_matches(rule, request, other))
    return next(matching, None)


def _equivalent_versions(cluster: Cluster, request: AdmissionRequest) -> list[Strategy]:
    """Return the other served versions of the resource that have the same subresource."""
    info = request.strategy.info
    return [
        each
        for each in cluster.registry.sharing(info.storage)
        if each.info.kind != info.kind
        and (not request.subresource or each.info.subresource(request.subresource) is not None)
    ]


def _rule_matches(rule: Rule, request: AdmissionRequest, strategy: Strategy) -> bool:
    kind = strategy.info.kind
    return (
        _scope_matches(rule, request, strategy)
        and _is_listed(rule.operations, request.operation)
        and _is_listed(rule.groups, kind.group)
        and _is_listed(rule.versions, kind.version)
        and _resource_matches(rule, kind.plural, request.subresource)
    )


def _scope_matches(rule: Rule, request: AdmissionRequest, strategy: Strategy) -> bool:
    if rule.scope == "*":
        return True
    namespaced = bool(request.namespace) and not _is_namespace(strategy)
    return namespaced if rule.scope == "Namespaced" else not namespaced


def _is_listed(allowed: tuple[str, ...], found: str) -> bool:
    return "*" in allowed or found in allowed


def _resource_matches(rule: Rule, plural: str, subresource: str) -> bool:
    for each in rule.resources:
        allowed, _, subresource_pattern = each.partition("/")
        if allowed in ("*", plural) and subresource_pattern in ("*", subresource):
            return True
    return False
