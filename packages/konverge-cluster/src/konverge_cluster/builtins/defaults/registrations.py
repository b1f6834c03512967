"""Defaults of admission webhooks and policies, flow control, role bindings and priority classes."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "default_api_service",
    "default_binding",
    "default_flow_schema",
    "default_mutating_webhooks",
    "default_policy",
    "default_policy_binding",
    "default_priority_class",
    "default_priority_level",
    "default_validating_webhooks",
]

_RBAC: Final = "rbac.authorization.k8s.io"


def default_validating_webhooks(configuration: dict[str, Any]) -> None:
    for webhook in configuration.get("webhooks", ()):
        _default_webhook(webhook)


def default_mutating_webhooks(configuration: dict[str, Any]) -> None:
    for webhook in configuration.get("webhooks", ()):
        _default_webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def _default_webhook(webhook: dict[str, Any]) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("matchPolicy", "Equivalent")
    webhook.setdefault("namespaceSelector", {})
    webhook.setdefault("objectSelector", {})
    webhook.setdefault("timeoutSeconds", 10)
    service = webhook["clientConfig"].get("service")
    if service is not None:
        service.setdefault("port", 443)
    for rule in webhook.get("rules", ()):
        rule.setdefault("scope", "*")


def default_policy(policy: dict[str, Any]) -> None:
    spec = policy["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if "matchConstraints" in spec:
        _default_match_resources(spec["matchConstraints"])


def default_policy_binding(binding: dict[str, Any]) -> None:
    if "matchResources" in binding["spec"]:
        _default_match_resources(binding["spec"]["matchResources"])


def _default_match_resources(match: dict[str, Any]) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
        rule.setdefault("scope", "*")


def default_binding(binding: dict[str, Any]) -> None:
    """Default a RoleBinding or a ClusterRoleBinding."""
    binding["roleRef"]["apiGroup"] = binding["roleRef"].get("apiGroup") or _RBAC
    for subject in binding.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def default_priority_class(priority: dict[str, Any]) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_flow_schema(schema: dict[str, Any]) -> None:
    spec = schema["spec"]
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def default_priority_level(level: dict[str, Any]) -> None:
    spec = level["spec"]
    for name, shares in (("exempt", 0), ("limited", 30)):
        if name in spec:
            if spec[name].get("nominalConcurrencyShares") is None:
                spec[name]["nominalConcurrencyShares"] = shares
            spec[name].setdefault("lendablePercent", 0)
    queuing = spec.get("limited", {}).get("limitResponse", {}).get("queuing")
    if queuing is not None:
        for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
            queuing[name] = queuing.get(name) or value


def default_api_service(service: dict[str, Any]) -> None:
    reference = service["spec"].get("service")
    if reference is not None:
        reference.setdefault("port", 443)
