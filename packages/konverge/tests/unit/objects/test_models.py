from __future__ import annotations

import copy
import pickle

import pytest

from konverge.objects.codec import encode
from konverge.objects.models import Model, ModelKeywords, attributes, field, replace


class Port(Model):
    name: str | None = None
    container_port: int
    host_ip: str | None = None


class ServiceSpec(Model):
    cluster_ip: str | None = None
    from_: str | None = None
    ports: list[Port] = field(default_factory=list)
    selector: dict[str, str] = field(default_factory=dict)


def test_attributes_are_snake_case_and_wire_names_camel_case() -> None:
    spec = ServiceSpec(cluster_ip="10.0.0.1", from_="x", ports=[Port(container_port=80, host_ip="::")])
    assert encode(spec) == b'{"clusterIP":"10.0.0.1","from":"x","ports":[{"containerPort":80,"hostIP":"::"}]}'
    assert attributes(Port) == {"name": "name", "containerPort": "container_port", "hostIP": "host_ip"}


def test_keys_of_maps_are_never_translated() -> None:
    assert encode(ServiceSpec(selector={"app_name": "x"})) == b'{"selector":{"app_name":"x"}}'


def test_a_changed_copy_shares_the_other_values() -> None:
    spec = ServiceSpec(cluster_ip="10.0.0.1", ports=[Port(container_port=80)])
    changed = replace(spec, cluster_ip=None)
    assert (changed.cluster_ip, spec.cluster_ip) == (None, "10.0.0.1")
    assert changed.ports is spec.ports
    with pytest.raises(TypeError, match="cluster_id"):
        replace(spec, cluster_id="x")


def test_type_checkers_know_every_class_keyword_of_msgspec() -> None:
    config = {name for name in dir(ServiceSpec.__struct_config__) if not name.startswith("_")}
    assert set(ModelKeywords.__annotations__) - {"rename", "kw_only"} == config


def test_the_error_for_a_wrong_attribute_suggests_the_right_one() -> None:
    spec = ServiceSpec()
    with pytest.raises(AttributeError, match="ServiceSpec has no 'clusterIP'; did you mean 'cluster_ip'"):
        spec.clusterIP  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'cluster_ip'"):
        spec.cluser_ip = "x"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no 'zzz'$"):
        spec.zzz  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(spec, "clusterIP")


def test_the_error_for_a_wrong_argument_suggests_the_right_one() -> None:
    with pytest.raises(TypeError, match="Port has no 'containerPort'; did you mean 'container_port'"):
        Port(containerPort=80)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="container_port"):
        Port()  # type: ignore[call-arg]


def test_arguments_are_keywords() -> None:
    with pytest.raises(TypeError):
        Port("http", 80)  # type: ignore[call-arg]


def test_models_compare_copy_and_pickle_by_value() -> None:
    port = Port(container_port=80)
    assert copy.deepcopy(port) == copy.copy(port) == pickle.loads(pickle.dumps(port)) == port
    assert Port(container_port=81) != port


def test_the_repr_shows_only_the_fields_that_were_set() -> None:
    assert repr(Port(container_port=80)) == "Port(container_port=80)"
