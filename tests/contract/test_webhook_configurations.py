"""Webhook configurations: defaults and validation errors are the same on both servers."""

from __future__ import annotations

from typing import Any

import pytest

from two_servers import Api, masked

PATH = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
HOOK: dict[str, Any] = {
    "name": "a.hooks.test",
    "clientConfig": {"url": "https://example.test/hook"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def hook(**changes: Any) -> list[dict[str, Any]]:
    return [{**HOOK, **changes}]


def rule(**changes: Any) -> list[dict[str, Any]]:
    return hook(rules=[{**RULE, **changes}])


def at(**config: Any) -> list[dict[str, Any]]:
    return hook(clientConfig=config)


MISTAKES: dict[str, list[dict[str, Any]]] = {
    "no name": hook(name=""),
    "a short name": hook(name="a.b"),
    "a name in capitals": hook(name="A.b.c"),
    "a name twice": [HOOK, HOOK],
    "failure policy": hook(failurePolicy="Maybe"),
    "match policy": hook(matchPolicy="Maybe"),
    "reinvocation policy": hook(reinvocationPolicy="Maybe"),
    "side effects": hook(sideEffects="Some"),
    "no side effects": [{key: value for key, value in HOOK.items() if key != "sideEffects"}],
    "no time": hook(timeoutSeconds=0),
    "much time": hook(timeoutSeconds=31),
    "namespace selector": hook(namespaceSelector={"matchLabels": {"a b": "c d"}}),
    "object selector": hook(
        objectSelector={
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "-", "operator": "Bogus", "values": ["!"]},
            ]
        }
    ),
    "no versions": hook(admissionReviewVersions=[]),
    "unknown versions": hook(admissionReviewVersions=["v2"]),
    "odd versions": hook(admissionReviewVersions=["v1", "v1", "V"]),
    "no address": at(),
    "two addresses": at(url="https://x", service={"namespace": "a", "name": "b"}),
    "plain http": at(url="http://x"),
    "no host": at(url="https:///x"),
    "too much in the url": at(url="https://u:p@x/y?z=1#f"),
    "a port that is none": at(url="https://x:abc/"),
    "a relative url": at(url="x"),
    "a service without namespace": at(service={"namespace": "", "name": "b", "port": 0, "path": "x//y/A_/"}),
    "a service without name": at(service={"namespace": "a", "name": "", "path": "//"}),
    "no operations": rule(operations=[]),
    "odd operations": rule(operations=["*", "CREATE", "READ"]),
    "no groups": rule(apiGroups=[]),
    "odd groups": rule(apiGroups=["*", "a"]),
    "no api versions": rule(apiVersions=[]),
    "odd api versions": rule(apiVersions=["*", ""]),
    "no resources": rule(resources=[]),
    "all and one": rule(resources=["*", "pods"]),
    "all of all and one": rule(resources=["*/*", "pods"]),
    "odd subresources": rule(resources=["pods/*", "pods/status", "", "*/status", "a/status"]),
    "scope": rule(scope="Bogus"),
    "nameless conditions": hook(
        matchConditions=[{"name": "", "expression": ""}, {"name": "a", "expression": " "}, {"name": "a"}]
    ),
    "a condition on nothing": hook(matchConditions=[{"name": "a", "expression": "nothing == 1"}]),
    "a condition that is no text": hook(matchConditions=[{"name": "a", "expression": "object.metadata.name +"}]),
    "a condition that is no truth": hook(matchConditions=[{"name": "a", "expression": "'text'"}]),
    "a condition on an unknown field": hook(matchConditions=[{"name": "a", "expression": "request.nothing == 'x'"}]),
    "good conditions": hook(
        matchConditions=[
            {"name": "a", "expression": "object.spec.replicas > 1 || has(oldObject.spec)"},
            {"name": "b", "expression": "request.userInfo.username != 'x' && 'g' in request.userInfo.groups"},
            {"name": "c.io/d", "expression": "request.resource.resource == 'pods' && !request.dryRun"},
        ]
    ),
    "everything by default": [HOOK, {**HOOK, "name": "b.hooks.test", "clientConfig": {"service": {}}}],
}


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize("name", MISTAKES)
def test_both_servers_respond_equally_to_a_configuration(both: tuple[Api, Api], name: str, kind: str) -> None:
    body = {"metadata": {"name": "judged"}, "webhooks": MISTAKES[name]}

    embedded, real = (api.request("POST", f"{PATH}/{kind}webhookconfigurations?dryRun=All", body) for api in both)

    assert masked(embedded.json()) == masked(real.json())
    assert embedded.status == real.status
    assert embedded.warnings == real.warnings


def test_defaults_are_set_and_an_update_requires_the_version(api: Api) -> None:
    path = f"{PATH}/mutatingwebhookconfigurations"
    created = api.request("POST", path, {"metadata": {"name": "defaults"}, "webhooks": [HOOK]}).json()
    service = {**created["webhooks"][0], "clientConfig": {"service": {"namespace": "a", "name": "b"}}}
    changed = {**created, "webhooks": [service]}
    updated = api.request("PUT", f"{path}/defaults", changed).json()
    blind = {**changed, "metadata": {"name": "defaults"}}
    refused = api.request("PUT", f"{path}/defaults", blind)
    api.request("DELETE", f"{path}/defaults")

    assert created["webhooks"][0] | HOOK | {"rules": created["webhooks"][0]["rules"]} == created["webhooks"][0]
    assert created["webhooks"][0]["rules"] == [{**RULE, "scope": "*"}]
    filled = {key: value for key, value in created["webhooks"][0].items() if key not in HOOK}
    assert filled == {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "reinvocationPolicy": "Never",
        "timeoutSeconds": 10,
    }
    assert updated["webhooks"][0]["clientConfig"]["service"] == {"namespace": "a", "name": "b", "port": 443}
    assert [created["metadata"]["generation"], updated["metadata"]["generation"]] == [1, 2]
    assert refused.status == 422
    assert refused.json()["details"]["causes"][0]["field"] == "metadata.resourceVersion"
