"""The children of a WebApp, plain functions of it."""

from __future__ import annotations

import pytest

from konverge.k8s.apps.v1 import Deployment
from konverge.objects import to_wire
from konverge_operators.webapp.api import Autoscaling, WebAppStatus
from konverge_operators.webapp.children import (
    autoscaler_for,
    deployment_for,
    ingress_for,
    initial_replicas,
    labels_of,
    selector_of,
    service_for,
)
from konverge_operators.webapp.facts import facts_of, image_to_run
from webapps import webapp

APP = webapp(
    port=8080,
    env={"B": "2", "A": "1"},
    resources={"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
    ingress={"host": "a.example.com", "path": "/shop", "className": "nginx"},
    autoscaling={"minReplicas": 2, "maxReplicas": 5, "cpuPercent": 70},
)


def test_the_deployment_has_all_fields_of_the_spec_and_omits_replicas_on_request() -> None:
    wire = to_wire(deployment_for(APP, image="nginx:1.27", replicas=None))
    assert "replicas" not in wire["spec"]
    (container,) = wire["spec"]["template"]["spec"]["containers"]
    assert container == {
        "name": "web",
        "image": "nginx:1.27",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    }
    assert to_wire(deployment_for(APP, image="nginx:1.27", replicas=0))["spec"]["replicas"] == 0


def test_the_selector_matches_the_labels_of_the_pods() -> None:
    assert selector_of(APP).items() <= labels_of(APP).items()
    assert service_for(APP).spec.selector == selector_of(APP)


def test_requests_are_routed_from_the_host_through_the_service_to_the_port() -> None:
    assert APP.spec.ingress is not None
    wire = to_wire(ingress_for(APP, APP.spec.ingress))
    assert wire["spec"]["ingressClassName"] == "nginx"
    (rule,) = wire["spec"]["rules"]
    backend = {"service": {"name": "web", "port": {"name": "http"}}}
    assert rule == {
        "host": "a.example.com",
        "http": {"paths": [{"path": "/shop", "pathType": "Prefix", "backend": backend}]},
    }
    (port,) = service_for(APP).spec.ports
    assert (port.name, port.port, port.target_port) == ("http", 8080, "http")


def test_the_autoscaler_targets_the_deployment() -> None:
    assert APP.spec.autoscaling is not None
    spec = to_wire(autoscaler_for(APP, APP.spec.autoscaling))["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}


@pytest.mark.parametrize(("desired", "existing", "initial"), [(1, 0, 2), (3, 0, 3), (9, 0, 5), (1, 4, 4), (1, 9, 5)])
def test_under_autoscaling_a_deployment_starts_with_its_previous_size_within_the_bounds(
    desired: int, existing: int, initial: int
) -> None:
    app = webapp(replicas=desired)
    app.status = WebAppStatus(replicas=existing)
    assert initial_replicas(app, Autoscaling(min_replicas=2, max_replicas=5)) == initial


@pytest.mark.parametrize(
    ("rollback", "failed", "good", "runs"),
    [
        (True, "nginx:2", "nginx:1", "nginx:1"),
        (False, "nginx:2", "nginx:1", "nginx:2"),
        (True, "nginx:other", "nginx:1", "nginx:2"),
        (True, "nginx:2", "", "nginx:2"),
        (True, "", "nginx:1", "nginx:2"),
    ],
)
def test_the_last_good_image_runs_when_the_image_of_the_spec_has_failed(
    rollback: bool, failed: str, good: str, runs: str
) -> None:
    app = webapp(image="nginx:2", rollback=rollback)
    app.status = WebAppStatus(failed_image=failed, last_good_image=good)
    assert image_to_run(app) == runs


def test_a_deployment_without_a_status_is_not_observed() -> None:
    deployment: Deployment = deployment_for(APP, image="nginx:1.25", replicas=None)
    deployment.metadata.generation = 1
    facts = facts_of(APP, deployment)
    assert (facts.observed, facts.desired, facts.available, facts.image) == (False, 1, 0, "nginx:1.25")
