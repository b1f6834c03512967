"""The webhooks of the WebApp operator: as functions, and called by the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge import ObjectMeta, Unstructured
from konverge.errors import ApiError, Invalid
from konverge.objects import Time, from_wire, to_wire
from konverge.schema import validate
from konverge.webhooks import AdmissionRequest, Deny, User
from konverge_operators.protection import PROTECTED
from konverge_operators.webapp.admission import check, fill_in
from konverge_operators.webapp.api import MAX_REPLICAS, Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1, WebAppV1Beta1Spec
from konverge_operators.webapp.operator import operator
from repository import ROOT
from webapps import WebAppEnvironment, webapp, webapp_environment

CREATE, UPDATE, DELETE = (AdmissionRequest(operation=word) for word in ("CREATE", "UPDATE", "DELETE"))
FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/webapp"
README = FOLDER / "README.md"
SAMPLES = sorted((FOLDER / "samples").glob("*.yaml"))


def verdict(new: WebApp, old: WebApp | None = None, request: AdmissionRequest = CREATE) -> tuple[list[str], list[str]]:
    """Return the denied paths and the warnings."""
    results = list(check(new, old, request))
    denied = [result.path for result in results if isinstance(result, Deny)]
    return denied, [result for result in results if isinstance(result, str)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"image": "nginx"}, ".spec.image"),
        ({"image": "nginx:latest"}, ".spec.image"),
    ],
)
def test_a_violation_of_a_rule_is_denied(spec: dict[str, Any], path: str) -> None:
    assert verdict(webapp(**spec))[0] == [path]


@pytest.mark.parametrize(
    ("spec", "path"), [({"image": "apache:2"}, ".spec.image"), ({"port": 81}, ".spec.port"), ({"image": "nginx:2"}, "")]
)
def test_changes_of_immutable_fields_are_denied(spec: dict[str, Any], path: str) -> None:
    assert verdict(webapp(**spec), webapp(), UPDATE)[0] == ([path] if path else [])


def test_an_object_that_violated_a_rule_before_can_still_be_changed_and_deleted() -> None:
    old = webapp(image="nginx:latest")
    assert verdict(webapp(image="nginx:latest", env={"A": "b"}), old, UPDATE)[0] == []
    assert verdict(webapp(image="nginx:latest", env={"a b": "c"}), old, UPDATE)[0] == [".spec.env"]
    terminating = webapp(image="other", port=1)
    terminating.metadata.deletion_timestamp = Time.now()
    assert verdict(terminating, old, UPDATE) == ([], [])


def test_only_the_namespace_controller_can_delete_a_protected_application() -> None:
    app = webapp(annotations={PROTECTED: "true"})
    assert len(list(check(app, None, DELETE))) == 1
    assert list(check(webapp(annotations={PROTECTED: "false"}), None, DELETE)) == []
    cleaner = User(name="system:serviceaccount:kube-system:namespace-controller")
    assert list(check(app, None, AdmissionRequest(operation="DELETE", user=cleaner))) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicas": 0}, "no pod serves"),
        ({"replicas": 51}, "many"),
        ({"autoscaling": {"maxReplicas": 4}}, "needs a CPU request"),
        ({"autoscaling": {"maxReplicas": 1}, "resources": {"requests": {"cpu": "1"}}}, "outside"),
    ],
)
def test_risky_values_cause_warnings(spec: dict[str, Any], text: str) -> None:
    denied, warnings = verdict(webapp(**spec))
    assert denied == []
    assert [text in warning for warning in warnings] == [True]


def test_labels_and_resources_are_defaulted_and_existing_values_stay() -> None:
    app = webapp()
    app.metadata.labels["app.kubernetes.io/managed-by"] = "me"
    fill_in(app, None, CREATE)
    assert app.metadata.labels == {
        "app.kubernetes.io/name": "webapp",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/managed-by": "me",
    }
    assert app.spec.resources is not None
    assert app.spec.resources.requests == {"cpu": "100m", "memory": "128Mi"}
    bare = webapp()
    fill_in(bare, webapp(), UPDATE)
    assert bare.spec.resources is None


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_the_samples_are_valid(sample: Path) -> None:
    app = from_wire(WebApp, yaml.safe_load(sample.read_text()))
    assert validate(app) == []
    assert verdict(app) == ([], [])


def test_the_operator_has_the_nginx_sample() -> None:
    app = from_wire(WebApp, yaml.safe_load(operator.samples[0].read_text()))
    assert (app.name, app.spec.image, app.spec.replicas) == ("nginx-app", "nginx:1.25", 3)


async def test_the_server_calls_the_webhooks_of_a_running_operator() -> None:
    async with webapp_environment(webhooks=True) as env, env.operating():
        with pytest.raises(Invalid, match="the image needs a tag"):
            await env.client.create(webapp(image="nginx"))
        with pytest.raises(Invalid, match="should be less than or equal to 100"):
            await create_raw(env, replicas=101)
        created = await env.client.create(webapp(annotations={PROTECTED: "true"}))
        assert created.metadata.labels["app.kubernetes.io/instance"] == "web"
        await env.reaches(Phase.READY)

        with pytest.raises(Invalid, match="the port is immutable, it is 80"):
            await env.change(port=81)
        with pytest.raises(ApiError, match="the WebApp is protected"):
            await env.client.delete(WebApp, "web")
        await env.client.patch(WebApp, "web", {"metadata": {"annotations": {PROTECTED: None}}})
        await env.client.delete(WebApp, "web")
        await env.until(lambda: _is_empty(env))


async def _is_empty(env: WebAppEnvironment) -> bool:
    return await env.children() == []


async def test_an_old_version_is_served_and_scaled_through_its_own_field() -> None:
    async with webapp_environment(webhooks=True) as env, env.operating():
        old = WebAppV1Beta1(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=WebAppV1Beta1Spec(image="nginx:1.25", size=2, host="a.example.com"),
        )
        await env.client.create(old)
        await env.reaches(Phase.READY)
        assert await env.children() == ["Deployment web", "Ingress web", "PodDisruptionBudget web", "Service web"]
        await env.client.scale(WebAppV1Beta1, "web", 3)
        app = await env.reaches(Phase.READY)
        assert app.spec.replicas == 3
        assert (await env.client.get(WebAppV1Beta1, "web")).status.available_replicas == 3


async def test_one_limit_of_replicas_holds_on_every_way() -> None:
    assert f"at most {MAX_REPLICAS};" in README.read_text()
    async with webapp_environment(webhooks=True) as env, env.operating():
        await env.client.create(webapp())
        await env.reaches(Phase.READY)
        with pytest.raises(Invalid, match="should be less than or equal to 100"):
            await env.client.scale(WebApp, "web", 101)  # the scale subresource calls no webhook
        with pytest.raises(Invalid, match="should be less than or equal to 100"):
            await env.change(autoscaling={"maxReplicas": 101})
        with pytest.raises(ApiError, match="<= 100"):  # the webhooks get v1, so the server converts first
            await env.client.patch(WebAppV1Beta1, "web", {"spec": {"size": 101}})
        await env.client.scale(WebApp, "web", MAX_REPLICAS)
        await env.reaches(Phase.READY)


async def test_a_user_reads_the_message_of_the_server_for_what_the_schema_refuses() -> None:
    async with webapp_environment() as plain, webapp_environment(webhooks=True) as env:
        for spec in ({"replicas": "three"}, {"image": 7}, {"port": 0}, {"unknown": {}, "replicas": -1}):
            messages = []
            for cluster in (plain, env):
                with pytest.raises(Invalid) as refused:
                    await create_raw(cluster, **spec)
                messages.append(str(refused.value))
            assert messages[0] == messages[1]


async def create_raw(env: WebAppEnvironment, **spec: Any) -> None:
    """Create an object as YAML would, whatever its types are."""
    document = to_wire(webapp())
    document["spec"] |= spec
    await env.client.create(Unstructured(document))


async def test_the_largest_object_that_the_server_accepts_is_reconciled() -> None:
    async with webapp_environment(webhooks=True) as env, env.operating():
        variables = {f"V{number}": "\u00e4\u00f6" * 5000 for number in range(60)}
        annotations = {"example.com/large": "x" * 250_000}
        assert len(json.dumps(variables, ensure_ascii=False).encode()) > 1_100_000
        await env.client.create(webapp(env=variables, annotations=annotations))
        app = await env.reaches(Phase.READY)
        assert app.spec.env == variables
        deployment = await env.deployment()
        assert deployment.spec.template.spec is not None
        assert {one.name: one.value for one in deployment.spec.template.spec.containers[0].env} == variables
