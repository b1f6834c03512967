"""The webhook client: addresses, service references, and errors of broken servers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.wire.messages import Request
from konverge_cluster.webhook_client import HttpResponse, Target, WebhookCallError, WebhookClient
from konverge_cluster.webhook_client.responses import read_response
from konverge_cluster.webhook_client.targets import Service
from webhook_endpoint import HookServer

REVIEW: dict[str, Any] = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ({"url": "https://example.test"}, "https://example.test/"),
        ({"url": "https://example.test:8443/a/b/"}, "https://example.test:8443/a/b"),
        ({"url": "https://example.test//a/../b/./c"}, "https://example.test/b/c"),
        ({"service": {"namespace": "ns", "name": "web"}}, "https://web.ns.svc:443/"),
        ({"service": {"namespace": "ns", "name": "web", "port": 8443, "path": "/x/"}}, "https://web.ns.svc:8443/x"),
    ],
)
def test_a_url_is_written_as_on_the_real_server(config: dict[str, Any], url: str) -> None:
    assert Target.read(config).url == url


def test_a_ca_bundle_is_decoded_and_an_empty_one_means_the_system_trust() -> None:
    bundle = base64.b64encode(b"pem").decode()

    assert Target.read({"url": "https://x", "caBundle": bundle}).ca_bundle == b"pem"
    assert Target.read({"url": "https://x", "caBundle": ""}).ca_bundle is None


async def test_the_timeout_is_sent_in_whole_seconds_rounded_up() -> None:
    asked: list[Request] = []

    class Transport:
        async def __call__(self, server: str, request: Request, **_trust: Any) -> HttpResponse:
            assert server == "https://x"
            asked.append(request)
            return HttpResponse(
                200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "application/json"
            )

        async def close(self) -> None: ...

    await WebhookClient(Transport()).post(Target("https://x", "/y"), REVIEW, timeout=1.5)

    assert asked[0].query == (("timeout", "2s"),)
    assert asked[0].headers["user-agent"] == "kube-apiserver-admission"


async def test_a_service_that_is_not_registered_is_not_found() -> None:
    target = Target.read({"service": {"namespace": "ns", "name": "web"}})

    with pytest.raises(
        WebhookCallError, match=r'^Post "https://web.ns.svc:443/\?timeout=30s": service "web" not found$'
    ):
        await WebhookClient().post(target, REVIEW)


@pytest.mark.real_time
@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"])
async def test_a_link_local_address_is_never_called(host: str) -> None:
    webhook_client = WebhookClient()

    with pytest.raises(WebhookCallError, match="is a link-local address, which is not permitted"):
        await webhook_client.post(Target(f"https://{host}", "/latest"), REVIEW)
    await webhook_client.close()


async def test_ports_of_one_service_are_distinct() -> None:
    async def handle(path: str, review: dict[str, Any]) -> dict[str, Any]:
        return {**review, "path": path}

    webhook_client = WebhookClient()
    webhook_client.serve("ns", "web", handle, port=8443)

    response = await webhook_client.post(Target("", "/x", service=Service("ns", "web", 8443)), REVIEW)

    assert response["path"] == "/x"
    with pytest.raises(WebhookCallError, match="not found"):
        await webhook_client.post(Target("", "/x", service=Service("ns", "web")), REVIEW)


async def test_conversion_uses_the_same_client() -> None:
    async def handle(_path: str, review: dict[str, Any]) -> dict[str, Any]:
        return {**review, "response": {"uid": review["request"]["uid"]}}

    webhook_client = WebhookClient()
    webhook_client.serve("ns", "web", handle)
    review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": {"uid": "u"}}

    response = await webhook_client.convert("widgets.ex.io", {"service": {"namespace": "ns", "name": "web"}}, review)

    assert response["response"] == {"uid": "u"}


@pytest.mark.parametrize("status", [199, 207, 302, 307])
def test_only_success_responses_are_decoded(status: int) -> None:
    with pytest.raises(WebhookCallError, match=f"status code {status} but did not return more information"):
        read_response(HttpResponse(status, b"{}"), "admission.k8s.io/v1", "AdmissionReview")


def test_a_long_error_text_is_truncated() -> None:
    with pytest.raises(WebhookCallError) as caught:
        read_response(HttpResponse(500, b"x" * 5000, "text/plain"), "admission.k8s.io/v1", "AdmissionReview")

    assert len(str(caught.value)) < 2200


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookServer]:
    server = HookServer(tmp_path, {"/allow": {"allowed": True}})
    yield server
    server.close()


@pytest.mark.real_time
async def test_a_service_reference_can_be_forwarded_to_an_address(hooks: HookServer) -> None:
    webhook_client = WebhookClient()
    webhook_client.forward("test", "hooks", hooks.address)
    bundle = hooks.authority.ca.cert.read_bytes()
    target = Target("https://hooks.test.svc:443", "/allow", bundle, Service("test", "hooks"))

    response = await webhook_client.post(target, REVIEW)
    await webhook_client.close()

    assert response["response"] == {"uid": "u", "allowed": True}


@pytest.mark.real_time
async def test_a_certificate_for_another_name_is_not_accepted(hooks: HookServer) -> None:
    webhook_client = WebhookClient()
    webhook_client.forward("test", "others", hooks.address)
    bundle = hooks.authority.ca.cert.read_bytes()
    target = Target("https://others.test.svc:443", "/allow", bundle, Service("test", "others"))

    with pytest.raises(WebhookCallError, match="tls: failed to verify certificate: x509: certificate is not valid for"):
        await webhook_client.post(target, REVIEW)
    await webhook_client.close()


@pytest.mark.real_time
async def test_an_unknown_host_is_an_error() -> None:
    webhook_client = WebhookClient()

    with pytest.raises(WebhookCallError, match=r"dial tcp: lookup nowhere\.invalid: no such host$"):
        await webhook_client.post(Target("https://nowhere.invalid", "/"), REVIEW)
    await webhook_client.close()
