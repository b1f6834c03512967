"""Webhook configurations from the code, and the embedded server calling the webhooks without a socket."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import Client, crd_for
from konverge.client import InProcessTransport
from konverge.errors import Invalid, ServerError
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import LabelSelector, ObjectMeta, to_wire
from konverge.webhooks import (
    Address,
    MutatingWebhook,
    ValidatingWebhook,
    Webhooks,
    configurations_for,
    conversion_for,
)
from konverge_cluster import EmbeddedServer
from webhook_examples import OldWebApp, WebApp, WebAppSpec, check, conversion, fill_in

ADDRESS = Address(service="webapp", namespace="operators")


def test_the_configuration_is_complete() -> None:
    hook = ValidatingWebhook(
        WebApp,
        lambda *_: None,
        operations=("CREATE", "DELETE"),
        name="images",
        subresources=("", "status"),
        side_effects=True,
        timeout=3,
        failure_policy="Ignore",
        match_conditions={"by-people": "!request.userInfo.username.startsWith('system:')"},
        objects=LabelSelector.parse("tier=front"),
    )

    [created] = configurations_for([hook], ADDRESS, name="webapp", exclude=["monitoring"])

    assert to_wire(created) == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "webapp"},
        "webhooks": [
            {
                "name": "validate-images.v1.webapps.hooks.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {
                        "name": "webapp",
                        "namespace": "operators",
                        "path": "/validate/hooks.example.com/v1/webapps/images",
                        "port": 443,
                    }
                },
                "failurePolicy": "Ignore",
                "matchConditions": [
                    {"name": "by-people", "expression": "!request.userInfo.username.startsWith('system:')"}
                ],
                "matchPolicy": "Equivalent",
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["kube-system", "operators", "monitoring"],
                        }
                    ]
                },
                "objectSelector": {"matchLabels": {"tier": "front"}},
                "rules": [
                    {
                        "apiGroups": ["hooks.example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "DELETE"],
                        "resources": ["webapps", "webapps/status"],
                        "scope": "Namespaced",
                    }
                ],
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 3,
            }
        ],
    }


def test_each_sort_has_a_configuration_of_its_own() -> None:
    again = MutatingWebhook(ConfigMap, lambda *_: None, reinvoke=True)

    mutating, validating = configurations_for([check, fill_in, again, conversion], ADDRESS, name="webapp")

    assert (mutating.kind, validating.kind) == ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    policies = [each["reinvocationPolicy"] for each in to_wire(mutating)["webhooks"]]
    assert policies == ["Never", "IfNeeded"]
    assert configurations_for([conversion], ADDRESS, name="webapp") == []


def test_a_url_is_for_development() -> None:
    address = Address(url="https://127.0.0.1:9443/", ca_bundle=b"pem")

    [created] = configurations_for([check], address, name="webapp")

    config = to_wire(created)["webhooks"][0]["clientConfig"]
    assert config == {"url": f"https://127.0.0.1:9443{check.path}", "caBundle": "cGVt"}
    assert conversion_for(conversion, address).to_wire()["webhook"]["clientConfig"] == {
        "url": "https://127.0.0.1:9443/convert/hooks.example.com/webapps",
        "caBundle": "cGVt",
    }


@pytest.mark.parametrize("wrong", [{}, {"service": "x"}, {"url": "http://x"}, {"url": "https://x", "service": "x"}])
def test_an_address_is_a_service_or_a_url(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"Address|address"):
        Address(**wrong)  # type: ignore[arg-type]


def webapp(name: str, image: str) -> WebApp:
    return WebApp(metadata=ObjectMeta(name=name, namespace="default"), spec=WebAppSpec(image=image))


async def cluster(hooks: Webhooks) -> tuple[EmbeddedServer, Client]:
    server = EmbeddedServer()
    server.webhook_client.serve("operators", "webapp", hooks.handle_review)
    client = Client(InProcessTransport(server.handle))
    await client.create(crd_for(WebApp, OldWebApp, conversion=conversion_for(conversion, ADDRESS)))
    for each in configurations_for(hooks.hooks, ADDRESS, name="webapp"):
        await client.create(each)
    return server, client


async def test_the_embedded_server_calls_the_webhooks_on_virtual_time() -> None:
    hooks = Webhooks(check, fill_in, conversion)
    _, client = await cluster(hooks)

    created = await client.create(webapp("web", "nginx:1.25"))
    with pytest.raises(Invalid, match="an image needs a tag"):
        await client.create(webapp("other", "nginx"))
    old = await client.get(OldWebApp, "web", namespace="default")

    assert created.metadata.labels == {"app": "web"}
    assert (old.spec.repository, old.spec.tag) == ("nginx", "1.25")


async def test_in_process_too_what_fails_is_the_servers_error() -> None:
    async def late(*_: Any) -> None:
        raise TimeoutError

    slow = ValidatingWebhook(WebApp, late)
    hooks = Webhooks(slow, conversion)
    _, client = await cluster(hooks)

    with pytest.raises(ServerError, match="the webhook failed; see the log of the operator"):
        await client.create(webapp("web", "nginx:1.25"))
