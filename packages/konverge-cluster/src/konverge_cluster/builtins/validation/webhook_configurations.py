"""Validation of webhook configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge_cluster.api.field_errors import FieldError, duplicate, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import validate_label_selector
from konverge_cluster.cel.match_conditions import condition_errors
from konverge_cluster.webhook_client.configs import client_config_errors

__all__ = ["validate_webhook_configuration"]

FieldErrors = Iterator[FieldError]

_VERSIONS: Final = ("v1", "v1beta1")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_CHOICES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "sideEffects": ("None", "NoneOnDryRun"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}


def validate_webhook_configuration(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
    """Validate a configuration of either kind. Match conditions are validated only if they changed."""
    return list(_validate_configuration(document, old or {}))


def _validate_configuration(document: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    webhooks, old_webhooks = document.get("webhooks") or [], old.get("webhooks") or []
    old_conditions = [each.get("matchConditions") for each in old_webhooks]
    conditions_changed = [each.get("matchConditions") for each in webhooks] != old_conditions
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        yield from _validate_webhook(webhook, path)
        if conditions_changed:
            yield from condition_errors(webhook.get("matchConditions") or [], f"{path}.matchConditions")
        yield from _validate_review_versions(
            webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
        )
        name = webhook.get("name", "")
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)


def _validate_webhook(webhook: dict[str, Any], path: str) -> FieldErrors:
    yield from _validate_qualified_name(webhook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or []):
        yield from _validate_rule(rule, f"{path}.rules[{index}]")
    yield from _validate_enum(webhook, "failurePolicy", path)
    yield from _validate_enum(webhook, "matchPolicy", path)
    if webhook.get("sideEffects") is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    yield from _validate_enum(webhook, "sideEffects", path)
    seconds = webhook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    yield from validate_label_selector(webhook.get("namespaceSelector"), f"{path}.namespaceSelector")
    yield from validate_label_selector(webhook.get("objectSelector"), f"{path}.objectSelector")
    yield from _validate_enum(webhook, "reinvocationPolicy", path)
    yield from client_config_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")


def _validate_enum(webhook: dict[str, Any], name: str, path: str) -> FieldErrors:
    value = webhook.get(name)
    if value is not None and value not in _CHOICES[name]:
        yield unsupported(f"{path}.{name}", value, _CHOICES[name])


def _validate_qualified_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    errors = dns_subdomain_errors(name)
    if errors:
        yield invalid(path, name, ",".join(errors))
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _validate_review_versions(versions: list[str], path: str) -> FieldErrors:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        for error in rfc1035_label_errors(version):
            yield invalid(f"{path}[{index}]", version, error)
    if not set(versions) & set(_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {', '.join(_VERSIONS)}")


def _validate_rule(rule: dict[str, Any], path: str) -> FieldErrors:
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        text = "if '*' is present, must not specify other operations"
        yield invalid(f"{path}.operations", operations, text)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _validate_wildcards(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    yield from _validate_wildcards(versions, f"{path}.apiVersions", "API versions")
    yield from (required(f"{path}.apiVersions[{index}]") for index, each in enumerate(versions) if not each)
    yield from _validate_resources(rule.get("resources") or [], f"{path}.resources")
    if rule.get("scope", "*") not in ("*", "Cluster", "Namespaced"):
        yield unsupported(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _validate_wildcards(values: list[str], path: str, what: str) -> FieldErrors:
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield invalid(path, values, f"if '*' is present, must not specify other {what}")


def _validate_resources(resources: list[str], path: str) -> FieldErrors:
    if not resources:
        yield required(path)
    wildcards: set[str] = set()
    parts: set[str] = set()
    plain = False
    for index, each in enumerate(resources):
        if not each:
            yield required(f"{path}[{index}]")
            continue
        name, slash, part = each.partition("/")
        if not slash:
            # As in the real server, the last resource without a subresource decides.
            plain = each != "*"
            continue
        if name in wildcards:
            yield invalid(f"{path}[{index}]", each, f"if '{name}/*' is present, must not specify {each}")
        if part in parts:
            yield invalid(f"{path}[{index}]", each, f"if '*/{part}' is present, must not specify {each}")
        wildcards |= {name} if part == "*" else set()
        parts |= {part} if name == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, text)
