"""Classes made of foreign CRDs, on a real server that has those CRDs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from konverge.codegen import models_from_crds
from konverge.objects.codec import decode, to_wire
from konverge.objects.conditions import set_condition
from konverge.objects.edits import difference, full_object
from konverge.objects.metadata import ObjectMeta
from konverge.objects.quantities import Quantity
from konverge.objects.resources import Resource
from konverge.testing import ControlPlane

CRDS = Path(__file__).parents[1] / "data" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@cache
def made_of(name: str) -> Any:
    """Import what `konverge models` makes of a file."""
    module = ModuleType(f"on_the_server_{name}")
    sys.modules[module.__name__] = module
    exec(compile(models_from_crds((CRDS / f"{name}.yaml").read_text()), module.__name__, "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A server that has both files of CRDs."""
    crds = [crd for file in sorted(CRDS.glob("*.yaml")) for crd in yaml.safe_load_all(file.read_text())]
    for crd in crds:
        answer = control_plane.request("POST", DEFINITIONS, body=crd)
        assert answer.status == 201, answer.body
    for crd in crds:
        wait_until_established(control_plane, crd["metadata"]["name"])
    yield control_plane
    for crd in crds:
        control_plane.request("DELETE", f"{DEFINITIONS}/{crd['metadata']['name']}")


def wait_until_established(plane: ControlPlane, name: str) -> None:
    plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")


def path_of(model: type[Resource], namespace: str) -> str:
    kind = model.__kind__
    root = f"/apis/{kind.api_version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def created(plane: ControlPlane, obj: Resource, namespace: str) -> Any:
    """Create an object, and give what the server made of it in the class it came from."""
    path = f"{path_of(type(obj), namespace)}?fieldValidation=Strict"
    answer = plane.request("POST", path, body=to_wire(obj))
    assert answer.status == 201, answer.body
    read = decode(type(obj), answer.body)
    assert full_object(read) == answer.json()
    assert difference(read) == {}
    return read


def test_a_certificate_is_created_read_edited_and_given_a_status(served: ControlPlane, namespace: str) -> None:
    made = made_of("certificates")
    spec = made.CertificateSpec(
        secret_name="web-tls",
        issuer_ref=made.CertificateSpecIssuerRef(name="ca", kind="Issuer"),
        dns_names=["web.example.com"],
        private_key=made.CertificateSpecPrivateKey(algorithm="ECDSA", size=256),
        usages=["server auth", "digital signature"],
        is_ca=False,
    )
    certificate = created(served, made.Certificate(metadata=ObjectMeta(name="web"), spec=spec), namespace)
    assert certificate.spec.encode_usages_in_request is True
    assert certificate.spec.usages == ["server auth", "digital signature"]

    certificate.status.not_after = datetime(2027, 1, 1, tzinfo=UTC)
    certificate.status.conditions.append(made.CertificateStatusConditions(type="Ready", status="True"))
    path = f"{path_of(made.Certificate, namespace)}/web/status"
    answer = served.request("PUT", path, body=full_object(certificate))
    assert answer.status == 200, answer.body

    read = decode(made.Certificate, answer.body)
    assert read.status.not_after == datetime(2027, 1, 1, tzinfo=UTC)
    assert [condition.type for condition in read.status.conditions] == ["Ready"]


def test_the_old_version_reads_the_same_object(served: ControlPlane, namespace: str) -> None:
    made = made_of("certificates")
    ref = made.CertificateSpecIssuerRef(name="ca")
    spec = made.CertificateSpec(secret_name="s", issuer_ref=ref, common_name="old")
    created(served, made.Certificate(metadata=ObjectMeta(name="old"), spec=spec), namespace)

    answer = served.request("GET", f"{path_of(made.CertificateV1alpha2, namespace)}/old")
    read = decode(made.CertificateV1alpha2, answer.body)

    assert (read.api_version, read.spec.common_name) == ("certs.example.com/v1alpha2", "old")


def test_an_issuer_keeps_bytes_free_values_and_usual_conditions(served: ControlPlane, namespace: str) -> None:
    made = made_of("certificates")
    hook = made.IssuerSpecAcmeSolversDns01Webhook(group_name="g", solver_name="s", config={"any": [1, {"thing": "x"}]})
    acme = made.IssuerSpecAcme(
        server="https://acme.example.com",
        private_key_secret_ref=made.IssuerSpecAcmePrivateKeySecretRef(key="tls.key", name="account"),
        ca_bundle=b"\x00\xff",
        solvers=[made.IssuerSpecAcmeSolvers(dns01=made.IssuerSpecAcmeSolversDns01(webhook=hook))],
    )
    issuer = created(served, made.Issuer(metadata=ObjectMeta(name="acme"), spec=made.IssuerSpec(acme=acme)), namespace)
    assert issuer.spec.acme == acme

    set_condition(issuer.status.conditions, "Ready", True, reason="Registered", observed_generation=1)
    answer = served.request("PUT", f"{path_of(made.Issuer, namespace)}/acme/status", body=full_object(issuer))
    assert answer.status == 200, answer.body
    assert decode(made.Issuer, answer.body).status == issuer.status


def test_a_prometheus_takes_quantities_ports_and_embedded_objects(served: ControlPlane, namespace: str) -> None:
    made = made_of("monitoring")
    manager = made.PrometheusSpecAlertingAlertmanagers(name="main", port="web")
    spec = made.PrometheusSpec(
        replicas=2,
        resources=made.PrometheusSpecResources(requests={"memory": Quantity("1.5Gi"), "cpu": Quantity("500m")}),
        alerting=made.PrometheusSpecAlerting(alertmanagers=[manager]),
        stored_volume={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}},
        volumes=[{"name": "v", "emptyDir": {}}],
        weight=0.5,
        log_level="debug",
    )
    prometheus = created(served, made.Prometheus(metadata=ObjectMeta(name="main"), spec=spec), namespace)

    assert prometheus.spec.resources.requests == {"memory": Quantity("1536Mi"), "cpu": Quantity("0.5")}
    assert prometheus.spec.stored_volume.name == "x"
    assert prometheus.spec.scrape_interval == "30s"
    assert prometheus.status.available_replicas is None


def test_required_lists_satisfy_the_server_when_they_are_empty(served: ControlPlane, namespace: str) -> None:
    made = made_of("monitoring")
    spec = made.ServiceMonitorSpec(endpoints=[], selector=made.ServiceMonitorSpecSelector())

    monitor = created(served, made.ServiceMonitor(metadata=ObjectMeta(name="none"), spec=spec), namespace)

    assert monitor.spec == spec


def test_a_cluster_scoped_kind_lives_outside_of_namespaces(served: ControlPlane, namespace: str) -> None:
    made = made_of("certificates")
    name = f"{namespace}-issuer"
    spec = made.ClusterIssuerSpec(self_signed=made.ClusterIssuerSpecSelfSigned())

    issuer = created(served, made.ClusterIssuer(metadata=ObjectMeta(name=name), spec=spec), namespace)

    assert (issuer.namespace, issuer.spec) == ("", spec)
