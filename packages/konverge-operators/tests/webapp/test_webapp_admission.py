"""The webhooks of the WebApp operator: as functions, and as the server asks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge import ObjectMeta
from konverge.errors import ApiError, Invalid
from konverge.objects import Time, from_wire
from konverge.schema import validate
from konverge.webhooks import AdmissionRequest, Deny, User
from konverge_operators.webapp.admission import PROTECTED, check, fill_in
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1, WebAppV1Beta1Spec
from konverge_operators.webapp.operator import operator
from repository import ROOT
from webapps import WebAppWorld, webapp, webapp_world

CREATE, UPDATE, DELETE = (AdmissionRequest(operation=word) for word in ("CREATE", "UPDATE", "DELETE"))
SAMPLES = sorted((ROOT / "packages/konverge-operators/src/konverge_operators/webapp/samples").glob("*.yaml"))


def said(new: WebApp, old: WebApp | None = None, request: AdmissionRequest = CREATE) -> tuple[list[str], list[str]]:
    """Give the paths that are denied and the warnings."""
    words = list(check(new, old, request))
    denied = [one.path for one in words if isinstance(one, Deny)]
    return denied, [one for one in words if isinstance(one, str)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"image": "nginx"}, ".spec.image"),
        ({"image": "nginx:latest"}, ".spec.image"),
        ({"replicas": 101}, ".spec.replicas"),
    ],
)
def test_what_breaks_a_rule_is_denied(spec: dict[str, Any], path: str) -> None:
    assert said(webapp(**spec))[0] == [path]


@pytest.mark.parametrize(
    ("spec", "path"), [({"image": "apache:2"}, ".spec.image"), ({"port": 81}, ".spec.port"), ({"image": "nginx:2"}, "")]
)
def test_what_cannot_be_changed_is_denied(spec: dict[str, Any], path: str) -> None:
    assert said(webapp(**spec), webapp(), UPDATE)[0] == ([path] if path else [])


def test_an_object_that_broke_a_rule_before_can_still_be_changed_and_let_go() -> None:
    old = webapp(image="nginx:latest", replicas=200)
    assert said(webapp(image="nginx:latest", replicas=200, env={"A": "b"}), old, UPDATE)[0] == []
    assert said(webapp(image="nginx:latest", replicas=300), old, UPDATE)[0] == [".spec.replicas"]
    going = webapp(image="other", port=1)
    going.metadata.deletion_timestamp = Time.now()
    assert said(going, old, UPDATE) == ([], [])


def test_what_is_protected_is_deleted_by_nobody_but_who_empties_a_namespace() -> None:
    app = webapp(annotations={PROTECTED: "true"})
    assert len(list(check(app, None, DELETE))) == 1
    assert list(check(webapp(annotations={PROTECTED: "false"}), None, DELETE)) == []
    cleaner = User(name="system:serviceaccount:kube-system:namespace-controller")
    assert list(check(app, None, AdmissionRequest(operation="DELETE", user=cleaner))) == []


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"replicas": 0}, "nothing serves"),
        ({"replicas": 51}, "many"),
        ({"autoscaling": {"maxReplicas": 4}}, "none is requested"),
        ({"autoscaling": {"maxReplicas": 1}, "resources": {"requests": {"cpu": "1"}}}, "outside"),
    ],
)
def test_risky_values_are_warned_of(spec: dict[str, Any], word: str) -> None:
    denied, warnings = said(webapp(**spec))
    assert denied == []
    assert [word in warning for warning in warnings] == [True]


def test_labels_and_resources_are_filled_in_and_nothing_that_is_there_is_touched() -> None:
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
def test_the_samples_keep_every_rule(sample: Path) -> None:
    app = from_wire(WebApp, yaml.safe_load(sample.read_text()))
    assert validate(app) == []
    assert said(app) == ([], [])


def test_the_operator_brings_the_nginx_sample() -> None:
    app = from_wire(WebApp, yaml.safe_load(operator.samples[0].read_text()))
    assert (app.name, app.spec.image, app.spec.replicas) == ("nginx-app", "nginx:1.25", 3)


async def test_the_server_asks_them_and_the_operator_works_behind_them() -> None:
    async with webapp_world(webhooks=True) as world, world.operating():
        with pytest.raises(Invalid, match="an image needs a tag"):
            await world.client.create(webapp(image="nginx"))
        with pytest.raises(Invalid, match="101 replicas are more than the 100 allowed"):
            await world.client.create(webapp(replicas=101))
        made = await world.client.create(webapp(annotations={PROTECTED: "true"}))
        assert made.metadata.labels["app.kubernetes.io/instance"] == "web"
        await world.reaches(Phase.READY)

        with pytest.raises(Invalid, match="the port cannot be changed, it is 80"):
            await world.change(port=81)
        with pytest.raises(ApiError, match="it is protected"):
            await world.client.delete(WebApp, "web")
        await world.client.patch(WebApp, "web", {"metadata": {"annotations": {PROTECTED: None}}})
        await world.client.delete(WebApp, "web")
        await world.until(lambda: _is_empty(world))


async def _is_empty(world: WebAppWorld) -> bool:
    return await world.parts() == []


async def test_an_old_version_is_served_and_scaled_by_its_own_field() -> None:
    async with webapp_world(webhooks=True) as world, world.operating():
        old = WebAppV1Beta1(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=WebAppV1Beta1Spec(image="nginx:1.25", size=2, host="a.example.com"),
        )
        await world.client.create(old)
        await world.reaches(Phase.READY)
        assert await world.parts() == ["Deployment web", "Ingress web", "Service web"]
        await world.client.scale(WebAppV1Beta1, "web", 3)
        app = await world.reaches(Phase.READY)
        assert app.spec.replicas == 3
        assert (await world.client.get(WebAppV1Beta1, "web")).status.available_replicas == 3


async def test_a_spec_that_gets_by_the_webhooks_is_told_in_the_status() -> None:
    async with webapp_world(webhooks=True) as world, world.operating():
        await world.client.create(webapp())
        await world.reaches(Phase.READY)
        await world.client.scale(WebApp, "web", 200)  # nobody asks a webhook about a scale
        app = await world.reaches(Phase.DEGRADED)
        assert "200 replicas are more than the 100 allowed" in app.status.last_error
        assert (await world.deployment()).spec.replicas == 2


async def test_an_object_as_large_as_the_server_takes_goes_round() -> None:
    async with webapp_world(webhooks=True) as world, world.operating():
        env = {f"V{number}": "\u00e4\u00f6" * 5000 for number in range(60)}
        annotations = {"example.com/large": "x" * 250_000}
        assert len(json.dumps(env, ensure_ascii=False).encode()) > 1_100_000
        await world.client.create(webapp(env=env, annotations=annotations))
        app = await world.reaches(Phase.READY)
        assert app.spec.env == env
        deployment = await world.deployment()
        assert deployment.spec.template.spec is not None
        assert {one.name: one.value for one in deployment.spec.template.spec.containers[0].env} == env
