"""WebApp in two versions: lossless conversion in both directions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import ObjectMeta, encode, from_wire, to_wire
from konverge.webhooks import Address, round_trip_changes
from konverge_operators.webapp.api import MAX_REPLICAS, WebApp, WebAppSpec, WebAppStatus
from konverge_operators.webapp.beta import WebAppV1Beta1, WebAppV1Beta1Spec, conversion
from konverge_operators.webapp.operator import operator

texts = st.text(max_size=8)
words = st.text(min_size=1, max_size=8)
maps = st.dictionaries(texts, texts, max_size=3)
amounts = st.dictionaries(texts, st.one_of(st.text(max_size=5), st.integers(0, 9)), max_size=2)
resources = st.fixed_dictionaries({}, optional={"requests": amounts, "limits": amounts})
autoscaling = st.fixed_dictionaries(
    {"maxReplicas": st.integers(1, 9)}, optional={"minReplicas": st.integers(1, 9), "cpuPercent": st.integers(1, 99)}
)
names = st.fixed_dictionaries({"name": words})
probe = st.fixed_dictionaries(
    {}, optional={"path": texts, "port": st.integers(1, 9), "periodSeconds": st.integers(1, 9)}
)
ingress = st.fixed_dictionaries(
    {"host": words},
    optional={
        "path": texts,
        "className": texts,
        "annotations": maps,
        "tls": st.fixed_dictionaries({}, optional={"secretName": words}),
        "gateway": names,
    },
)
added: dict[str, Any] = {
    "progressDeadlineSeconds": st.integers(1, 9999),
    "envFrom": st.lists(st.builds(lambda one: {"secretRef": one}, names), max_size=2),
    "imagePullSecrets": st.lists(names, max_size=2),
    "serviceAccountName": words,
    "automountServiceAccountToken": st.booleans(),
    "probes": st.fixed_dictionaries({}, optional={"readiness": probe, "liveness": probe, "startup": probe}),
    "security": st.fixed_dictionaries({}, optional={"restricted": st.booleans(), "runAsUser": st.integers(1, 9)}),
    "scheduling": st.fixed_dictionaries({}, optional={"nodeSelector": maps, "spreadBy": words}),
    "strategy": st.fixed_dictionaries({}, optional={"maxSurge": st.one_of(st.integers(0, 9), st.just("5%"))}),
    "monitoring": st.fixed_dictionaries({}, optional={"path": texts}),
}
"""The fields that v1beta1 does not have."""
shared: dict[str, Any] = {
    "port": st.integers(1, 65535),
    "env": maps,
    "resources": resources,
    "autoscaling": autoscaling,
    "rollback": st.booleans(),
}
v1_specs = st.fixed_dictionaries(
    {"image": words},
    optional={
        **shared,
        "replicas": st.integers(0, MAX_REPLICAS),
        "ingress": ingress,
        **added,
    },
)
old_specs = st.fixed_dictionaries(
    {"image": words}, optional={**shared, "size": st.integers(0, MAX_REPLICAS), "host": words}
)
metadata = st.builds(lambda marks: ObjectMeta(name="web", namespace="shop", annotations=marks, labels=marks), maps)
status = st.builds(WebAppStatus, available_replicas=st.integers(0, 9), last_error=texts)


@given(metadata, v1_specs, status)
def test_v1_round_trips_through_v1beta1_without_loss(meta: ObjectMeta, spec: Any, app_status: WebAppStatus) -> None:
    app = WebApp(metadata=meta, spec=from_wire(WebAppSpec, spec), status=app_status)
    assert round_trip_changes(conversion, app) == []


@given(metadata, old_specs, status)
def test_v1beta1_round_trips_through_v1_without_loss(meta: ObjectMeta, spec: Any, app_status: WebAppStatus) -> None:
    app = WebAppV1Beta1(metadata=meta, spec=from_wire(WebAppV1Beta1Spec, spec), status=app_status)
    assert round_trip_changes(conversion, app) == []


def converted(app: WebApp | WebAppV1Beta1, version: str) -> dict[str, Any]:
    return conversion.convert(encode(to_wire(app)), f"example.com/{version}")


def test_renamed_and_restructured_fields_keep_their_values() -> None:
    old = WebAppV1Beta1(spec=WebAppV1Beta1Spec(image="a:1", size=3, host="a.example.com"))
    new = converted(old, "v1")
    assert (new["spec"]["replicas"], new["spec"]["ingress"]["host"]) == (3, "a.example.com")
    assert "size" not in new["spec"]
    assert "annotations" not in new["metadata"]


def test_a_change_in_v1beta1_takes_precedence_over_stored_v1_fields() -> None:
    app = WebApp(spec=from_wire(WebAppSpec, {"image": "a:1", "ingress": {"host": "a.example.com", "path": "/x"}}))
    old = from_wire(WebAppV1Beta1, converted(app, "v1beta1"))
    old.spec.host = "b.example.com"
    assert converted(old, "v1")["spec"]["ingress"] == {"host": "b.example.com", "path": "/x"}
    old.spec.host = None
    back = converted(old, "v1")
    assert "ingress" not in back["spec"]
    assert "annotations" not in back["metadata"]


@pytest.mark.parametrize("text", ["", "null", "{", '{"path": 7}', "[]", '{"progressDeadlineSeconds": 0}'])
def test_an_invalid_annotation_is_ignored(text: str) -> None:
    meta = ObjectMeta(name="web", annotations={"webapp.example.com/v1": text})
    old = WebAppV1Beta1(metadata=meta, spec=WebAppV1Beta1Spec(image="a:1", host="a.example.com"))
    assert converted(old, "v1")["spec"]["ingress"] == {"host": "a.example.com", "path": "/"}


def test_a_version_that_the_server_cannot_convert_is_not_served() -> None:
    def served(address: Address | None) -> dict[str, bool]:
        (crd,) = operator.crds(address)
        return {each["name"]: each["served"] for each in crd["spec"]["versions"]}

    assert served(None) == {"v1": True, "v1beta1": False}
    assert served(Address(service="webhooks", namespace="default")) == {"v1": True, "v1beta1": True}
