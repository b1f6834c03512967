"""The children of a WebApp, plain functions of it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import to_wire
from konverge.workflow import ComponentPhase, ComponentState
from konverge_operators.autoscaling import initial_replicas
from konverge_operators.webapp.api import Autoscaling, Monitoring, Tls, WebAppStatus
from konverge_operators.webapp.children import (
    autoscaler_for,
    budget_for,
    deployment_for,
    http_route_for,
    ingress_for,
    labels_of,
    pod_monitor_for,
    selector_of,
    service_for,
)
from konverge_operators.webapp.phases import image_to_run, rollout_of
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
    for name in ("readinessProbe", "lifecycle", "securityContext", "volumeMounts"):
        assert container.pop(name)
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
    assert initial_replicas(existing or desired, Autoscaling(min_replicas=2, max_replicas=5)) == initial


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
    deployment = deployment_for(APP, image="nginx:1.25", replicas=None)
    deployment.metadata.generation = 1
    state = ComponentState(name="application", phase=ComponentPhase.CREATING, reason="New", objects=(deployment,))
    found = rollout_of(APP, state)
    assert (found.observed, found.desired, found.available, found.image) == (False, 1, 0, "nginx:1.25")


def pods_of(**spec: Any) -> dict[str, Any]:
    wire = to_wire(deployment_for(webapp(**spec), image="nginx:1", replicas=1))
    pods: dict[str, Any] = wire["spec"]["template"]["spec"]
    return pods


def test_pods_are_restricted_spread_and_have_no_token_unless_the_spec_says_otherwise() -> None:
    pods = pods_of()
    (container,), (spread,) = pods["containers"], pods["topologySpreadConstraints"]
    assert pods["automountServiceAccountToken"] is False
    assert (pods["securityContext"]["runAsNonRoot"], pods["securityContext"]["runAsUser"]) == (True, 65532)
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"] == {"matchLabels": selector_of(webapp())}

    pods = pods_of(security={"runAsUser": 7, "readOnlyRootFilesystem": False}, scheduling={"spreadBy": "zone"})
    assert pods["securityContext"]["runAsUser"] == 7
    assert pods["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is False
    assert pods["topologySpreadConstraints"][0]["topologyKey"] == "zone"

    pods = pods_of(security={"restricted": False}, automountServiceAccountToken=True)
    assert (pods["securityContext"], pods["automountServiceAccountToken"]) == ({}, True)
    assert "securityContext" not in pods["containers"][0]
    assert "volumes" not in pods


def test_readiness_is_a_connection_to_the_port_and_probes_can_be_set() -> None:
    (container,) = pods_of()["containers"]
    assert container["readinessProbe"]["tcpSocket"] == {"port": "http"}
    assert "livenessProbe" not in container

    readiness = {"path": "/ready", "port": 81, "initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 3}
    probes = {"readiness": readiness, "liveness": {"failureThreshold": 9}, "startup": {}}
    (container,) = pods_of(probes=probes)["containers"]
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/ready", "port": 81},
        "initialDelaySeconds": 1,
        "periodSeconds": 2,
        "timeoutSeconds": 3,
        "failureThreshold": 3,
    }
    assert container["livenessProbe"]["failureThreshold"] == 9
    assert container["startupProbe"]["tcpSocket"] == {"port": "http"}


def test_the_fields_for_pods_reach_the_pods() -> None:
    pods = pods_of(
        imagePullSecrets=[{"name": "registry"}],
        serviceAccountName="shop",
        scheduling={
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
            "priorityClassName": "high",
        },
        envFrom=[
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "keys", "optional": True}, "prefix": "K_"},
        ],
    )
    assert pods["imagePullSecrets"] == [{"name": "registry"}]
    assert (pods["serviceAccountName"], pods["priorityClassName"]) == ("shop", "high")
    assert pods["nodeSelector"] == {"disk": "ssd"}
    assert pods["tolerations"] == [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]
    first, second = pods["containers"][0]["envFrom"]
    assert first["configMapRef"]["name"] == "settings"
    assert (second["secretRef"]["name"], second["secretRef"]["optional"], second["prefix"]) == ("keys", True, "K_")


def test_the_strategy_and_a_deployment_that_is_never_paused() -> None:
    def deployment(**spec: Any) -> dict[str, Any]:
        wire = to_wire(deployment_for(webapp(**spec), image="nginx:1", replicas=1))
        return dict(wire["spec"])

    assert deployment()["paused"] is False
    assert deployment()["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    strategy = {"maxUnavailable": 0, "maxSurge": 2}
    assert deployment(strategy=strategy)["strategy"] == {"type": "RollingUpdate", "rollingUpdate": strategy}
    assert deployment(strategy={"type": "Recreate"})["strategy"] == {"type": "Recreate"}


def test_one_pod_at_a_time_may_be_evicted() -> None:
    spec = to_wire(budget_for(APP))["spec"]
    assert spec == {"maxUnavailable": 1, "selector": {"matchLabels": selector_of(APP)}}


def test_an_ingress_has_tls_and_annotations_on_request() -> None:
    app = webapp(ingress={"host": "a.example.com", "tls": {}, "annotations": {"cert-manager.io/issuer": "ca"}})
    assert app.spec.ingress is not None
    wire = to_wire(ingress_for(app, app.spec.ingress))
    assert wire["spec"]["tls"] == [{"hosts": ["a.example.com"], "secretName": "web-tls"}]
    assert wire["metadata"]["annotations"] == {"cert-manager.io/issuer": "ca"}
    app.spec.ingress.tls = Tls(secret_name="other")
    assert to_wire(ingress_for(app, app.spec.ingress))["spec"]["tls"][0]["secretName"] == "other"


def test_a_route_attaches_the_service_to_its_gateway() -> None:
    gateway = {"name": "public", "namespace": "gateways", "sectionName": "https"}
    app = webapp(port=8080, ingress={"host": "a.example.com", "path": "/shop", "gateway": gateway})
    assert app.spec.ingress is not None
    spec = http_route_for(app, app.spec.ingress)["spec"]
    assert (spec["parentRefs"], spec["hostnames"]) == ([gateway], ["a.example.com"])
    (rule,) = spec["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/shop"}}]
    assert rule["backendRefs"] == [{"name": "web", "port": 8080}]


def test_a_monitor_selects_the_pods() -> None:
    spec = pod_monitor_for(APP, Monitoring(path="/stats", interval="10s"))["spec"]
    assert spec["selector"] == {"matchLabels": selector_of(APP)}
    assert spec["podMetricsEndpoints"] == [{"port": "http", "path": "/stats", "interval": "10s"}]
