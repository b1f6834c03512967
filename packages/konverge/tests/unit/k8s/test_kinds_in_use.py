"""The generated kinds as an author uses them. mypy checks this file too: where it has no None check, none is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from konverge.errors import DecodeError
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec, StatefulSet
from konverge.k8s.autoscaling.v1 import Scale
from konverge.k8s.core.v1 import (
    ConfigMap,
    Container,
    Event,
    Namespace,
    Node,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from konverge.k8s.discovery.v1 import EndpointSlice
from konverge.k8s.events.v1 import Event as NewEvent
from konverge.k8s.meta.v1 import LabelSelector
from konverge.k8s.networking.v1 import NetworkPolicyIngressRule
from konverge.k8s.policy.v1 import Eviction
from konverge.k8s.resource.v1 import DeviceAttribute
from konverge.objects.codec import decode, encode, to_wire
from konverge.objects.kinds import Kind, Scope
from konverge.objects.metadata import ObjectMeta
from konverge.objects.quantities import Quantity
from konverge.objects.resources import kind_of


def deployment() -> Deployment:
    labels = {"app": "web"}
    pod = PodSpec(containers=[Container(name="web", image="web:1")])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    return Deployment(metadata=ObjectMeta(name="web", namespace="shop"), spec=spec)


def test_fields_that_were_not_set_are_not_encoded() -> None:
    assert to_wire(deployment()) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }


def test_the_status_exists_before_it_is_written() -> None:
    fresh = deployment()
    available: int = fresh.status.available_replicas or 0
    stateful = decode(StatefulSet, b'{"spec":{"selector":{},"template":{"spec":{"containers":[]}}}}')
    ready: int = stateful.status.ready_replicas or 0

    assert (available, ready) == (0, 0)
    assert Node().status.node_info is None


def test_a_spec_in_which_nothing_is_required_is_there_too() -> None:
    service = Service()
    service.spec.ports.append(ServicePort(port=80))

    assert to_wire(service)["spec"] == {"ports": [{"port": 80}]}
    assert Service(spec=ServiceSpec()).spec == Service().spec


def test_a_spec_with_required_fields_must_be_given() -> None:
    with pytest.raises(TypeError, match="spec"):
        Deployment(metadata=ObjectMeta(name="web"))  # type: ignore[call-arg]
    with pytest.raises(DecodeError, match="missing required field spec"):
        decode(Deployment, b'{"metadata":{"name":"web"}}')


def test_the_source_of_an_event_does_not_hide_the_bytes_it_came_from() -> None:
    data = b'{"metadata":{"name":"e"},"involvedObject":{},"source":{"component":"kubelet"},"unknown":1}'

    event = decode(Event, data)

    assert event.source == data
    assert event.source_ is not None
    assert event.source_.component == "kubelet"
    assert b'"source":{"component":"kubelet"}' in encode(event)


def test_python_keywords_get_an_underscore() -> None:
    assert len(decode(NetworkPolicyIngressRule, b'{"from":[{}]}').from_) == 1
    assert decode(DeviceAttribute, b'{"bool":true}').bool_ is True
    assert encode(DeviceAttribute(int_=3)) == b'{"int":3}'


def test_a_value_that_this_version_does_not_know_is_no_error() -> None:
    pod = decode(Pod, b'{"spec":{"containers":[],"restartPolicy":"OnFullMoon"},"status":{"phase":"Dreaming"}}')

    assert (pod.spec.restart_policy, pod.status.phase) == ("OnFullMoon", "Dreaming")


def test_null_stands_for_absent_as_servers_write_it() -> None:
    slices = decode(EndpointSlice, b'{"addressType":"IPv4","endpoints":null,"ports":null,"metadata":{"labels":null}}')
    event = decode(NewEvent, b'{"eventTime":null,"reason":"Started"}')

    assert (slices.endpoints, slices.ports, slices.metadata.labels) == ([], [], {})
    assert event.event_time is None


def test_bytes_are_text_in_base64_on_the_wire_only() -> None:
    secret = decode(Secret, b'{"data":{"password":"aHVudGVyMg=="}}')

    assert secret.data == {"password": b"hunter2"}
    assert encode(Secret(data={"a": b"\x00\xff"})).endswith(b'"data":{"a":"AP8="}}')


def test_quantities_keep_their_text() -> None:
    data = b'{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m","memory":1024}}}]}}'
    container = decode(Pod, data).spec.containers[0]

    assert container.resources is not None
    assert [Quantity(text) for text in container.resources.limits.values()] == [Quantity("1"), Quantity("1Ki")]
    assert encode(container.resources) == b'{"limits":{"cpu":"1000m","memory":1024}}'


def test_kinds_know_their_plural_and_scope() -> None:
    assert kind_of(Deployment) == Kind("apps", "v1", "Deployment", "deployments")
    assert kind_of(Namespace) == Kind("", "v1", "Namespace", "namespaces", Scope.CLUSTER)
    assert ConfigMap().api_version == "v1"


def test_a_kind_without_a_collection_says_where_it_is_written_to() -> None:
    assert "`pods/eviction`" in str(Eviction.__doc__)
    assert "`deployments/scale`" in str(Scale.__doc__)


def test_the_error_for_a_wrong_name_suggests_the_right_one() -> None:
    wire = "clusterIP"

    with pytest.raises(AttributeError, match="ServiceSpec has no 'clusterIP'; did you mean 'cluster_ip'"):
        getattr(ServiceSpec(), wire)


def test_modules_are_imported_on_demand() -> None:
    script = (
        "import sys, konverge.k8s; before = [n for n in sys.modules if n.startswith('konverge.k8s.')]; "
        "import konverge.k8s.rbac.v1; after = [n for n in sys.modules if n.startswith('konverge.k8s.')]; "
        "print(before, sorted(after), 'aiohttp' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()

    assert out == "[] ['konverge.k8s.meta', 'konverge.k8s.meta.v1', 'konverge.k8s.rbac', 'konverge.k8s.rbac.v1'] False"


def test_a_secret_does_not_show_its_data() -> None:
    secret = Secret(metadata=ObjectMeta(namespace="shop", name="db"), data={"password": b"canary"})
    assert repr(secret) == f"{secret}" == "Secret('shop/db')"
