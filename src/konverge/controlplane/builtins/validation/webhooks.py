"""Configurations of admission webhooks."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from konverge.controlplane.api.problems import duplicate, invalid, required, too_many, unsupported
from konverge.controlplane.builtins.validation.labels import label_selector
from konverge.controlplane.builtins.validation.values import Problems, port_number, qualified_name
from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors

__all__ = ["mutating_webhooks", "validating_webhooks"]

Spec = dict[str, Any]

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_URL_FORM: Final = "; desired format: https://host[/path]"
_ACCEPTED: Final = ("v1", "v1beta1")


def validating_webhooks(new: Spec) -> Problems:
    return _webhooks(new.get("webhooks", ()))


def mutating_webhooks(new: Spec) -> Problems:
    return _webhooks(new.get("webhooks", ()))


def _webhooks(webhooks: Any) -> Problems:
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        yield from _webhook(webhook, path)
        yield from _review_versions(webhook["admissionReviewVersions"] or [], f"{path}.admissionReviewVersions")
        if webhook["name"] in names:
            yield duplicate(f"{path}.name", webhook["name"])
        if webhook["name"]:
            names.add(webhook["name"])


def _webhook(webhook: Spec, path: str) -> Problems:
    yield from _full_name(webhook["name"], f"{path}.name")
    for index, rule in enumerate(webhook.get("rules", ())):
        yield from _rule(rule, f"{path}.rules[{index}]")
    for name, allowed in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        if webhook[name] not in allowed:
            yield unsupported(f"{path}.{name}", webhook[name], allowed)
    if webhook["sideEffects"] is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    elif webhook["sideEffects"] not in ("None", "NoneOnDryRun"):
        yield unsupported(f"{path}.sideEffects", webhook["sideEffects"], ("None", "NoneOnDryRun"))
    if not 1 <= webhook["timeoutSeconds"] <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], text)
    for name in ("namespaceSelector", "objectSelector"):
        yield from label_selector(webhook[name], f"{path}.{name}")
    policy = webhook.get("reinvocationPolicy", "Never")
    if policy not in ("IfNeeded", "Never"):
        yield unsupported(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
    yield from _client(webhook["clientConfig"], f"{path}.clientConfig")
    yield from _conditions(webhook.get("matchConditions", []), f"{path}.matchConditions")


def _full_name(name: str, path: str) -> Problems:
    if not name:
        yield required(path)
        return
    wrong = dns_subdomain_errors(name)
    if wrong:
        yield invalid(path, name, ",".join(wrong))
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule(rule: Spec, path: str) -> Problems:
    operations = rule.get("operations", [])
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        text = "if '*' is present, must not specify other operations"
        yield invalid(f"{path}.operations", operations, text)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for name, shown in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name, [])
        if not values:
            yield required(f"{path}.{name}")
        if len(values) > 1 and "*" in values:
            yield invalid(f"{path}.{name}", values, f"if '*' is present, must not specify other {shown}")
    for index, version in enumerate(rule.get("apiVersions", ())):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resources(rule.get("resources", []), f"{path}.resources")
    if rule["scope"] not in _SCOPES:
        yield unsupported(f"{path}.scope", rule["scope"], _SCOPES)


def _resources(resources: list[str], path: str) -> Problems:
    if not resources:
        yield required(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, each in enumerate(resources):
        if not each:
            yield required(f"{path}[{index}]")
            continue
        resource, slash, part = each.partition("/")
        if not slash:
            plain = each != "*"
            continue
        if resource in whole:
            text = f"if '{resource}/*' is present, must not specify {each}"
            yield invalid(f"{path}[{index}]", each, text)
        if part in everywhere:
            yield invalid(f"{path}[{index}]", each, f"if '*/{part}' is present, must not specify {each}")
        if part == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(part)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, text)


def _client(client: Spec, path: str) -> Problems:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(url: str, path: str) -> Problems:
    parts = urlsplit(url)
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        yield invalid(path, host, f"host must be specified{_URL_FORM}")
    if at:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(service: Spec, path: str) -> Problems:
    # The server takes the one for the other when it says which is missing.
    for name, shown in (("namespace", "name"), ("name", "namespace")):
        if not service[name]:
            yield required(f"{path}.{shown}")
    for problem in port_number(service["port"], f"{path}.port"):
        yield invalid(problem.path, service["port"], f"port is not valid: {problem.detail}")
    place = service.get("path", "")
    if place in ("", "/"):
        return
    if place == "//":
        yield invalid(f"{path}.path", place, "segment[0] may not be empty")
        return
    if not place.startswith("/"):
        yield invalid(f"{path}.path", place, "must start with a '/'")
    for index, step in enumerate(place[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(f"{path}.path", place, f"segment[{index}] may not be empty")
        for text in dns_subdomain_errors(step) if step else ():
            yield invalid(f"{path}.path", place, f"segment[{index}]: {text}")


def _review_versions(versions: list[str], path: str) -> Problems:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        for text in rfc1035_label_errors(version):
            yield invalid(f"{path}[{index}]", version, text)
    if not set(versions) & set(_ACCEPTED):
        yield invalid(path, versions, "must include at least one of v1, v1beta1")


def _conditions(conditions: list[Spec], path: str) -> Problems:
    if len(conditions) > 64:
        yield too_many(path, len(conditions), 64)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        if not condition["expression"].strip():
            yield required(f"{where}.expression")
        if not condition["name"]:
            yield required(f"{where}.name")
        else:
            yield from qualified_name(condition["name"], f"{where}.name")
        if condition["name"] in names:
            yield duplicate(f"{where}.name", condition["name"])
        names.add(condition["name"])
