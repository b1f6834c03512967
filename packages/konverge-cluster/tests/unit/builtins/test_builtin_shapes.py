"""Documents take the shape of the Go structs behind the built-in kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge_cluster.builtins.unmarshal_errors import UnmarshalError
from konverge_cluster.builtins.structs import kind_decoder, struct_decoder


def shape(kind: str, text: str) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    api_version, _, name = kind.rpartition("/")
    return kind_decoder(api_version, name)(json.loads(text), unknown), unknown


def spec(text: str) -> Any:
    return shape("v1/Pod", f'{{"spec": {text}}}')[0]["spec"]


def test_empty_and_null_fields_vanish() -> None:
    document, _ = shape("v1/ConfigMap", '{"data": {}, "binaryData": null, "immutable": null}')

    assert document == {}


def test_pointers_keep_their_zero() -> None:
    assert shape("v1/ConfigMap", '{"immutable": false}')[0] == {"immutable": False}
    assert spec('{"containers": null, "priority": 0, "hostNetwork": false}') == {"containers": None, "priority": 0}


def test_structs_are_always_there() -> None:
    assert shape("v1/Pod", "{}")[0] == {"spec": {"containers": None}, "status": {}}
    assert spec('{"containers": [{}]}') == {"containers": [{"name": "", "resources": {}}]}


def test_an_empty_list_that_is_always_printed_is_none() -> None:
    assert shape("rbac.authorization.k8s.io/v1/Role", '{"rules": []}')[0] == {"rules": None}


def test_unknown_fields_go_and_are_named_with_their_place() -> None:
    text = '{"a": 1, "spec": {"b": 1, "containers": [{"c": 1, "env": [{"name": "x", "d": 1}]}]}}'
    document, unknown = shape("v1/Pod", text)

    assert unknown == ["a", "spec.b", "spec.containers[0].c", "spec.containers[0].env[0].d"]
    assert document["spec"]["containers"][0]["env"] == [{"name": "x"}]


def test_unknown_fields_inside_the_values_of_a_map_are_named() -> None:
    text = '{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"x": {"foo": 1}}}}}]}}'
    _, unknown = shape("apiextensions.k8s.io/v1/CustomResourceDefinition", text)

    assert unknown == ["spec.versions[0].schema.openAPIV3Schema.properties.x.foo"]


def test_schemas_that_read_themselves_overlook_unknown_fields() -> None:
    text = '{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": {"foo": 1, "type": "string"}}}}]}}'
    document, unknown = shape("apiextensions.k8s.io/v1/CustomResourceDefinition", text)

    assert unknown == []
    assert document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"items": {"type": "string"}}


def test_amounts_are_written_as_the_server_prints_them() -> None:
    resources = spec('{"containers": [{"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi", "x/y": 2}}}]}')

    assert resources["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "x/y": "2"}


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    document, _ = shape("v1/Pod", '{"status": {"startTime": "2026-01-01T02:00:00.75+02:00"}}')

    assert document["status"] == {"startTime": "2026-01-01T00:00:00Z"}


def test_the_identity_and_metadata_of_an_object_are_left_alone() -> None:
    document, unknown = shape("v1/ConfigMap", '{"kind": "X", "apiVersion": "y", "metadata": {"foo": 1}}')

    assert document == {"kind": "X", "apiVersion": "y", "metadata": {"foo": 1}}
    assert unknown == []


def test_metadata_inside_a_template_takes_its_shape() -> None:
    metadata = struct_decoder("v1.ObjectMeta")({"labels": {}, "name": "", "creationTimestamp": None, "uid": "u"}, [])

    assert metadata == {"uid": "u"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('{"priority": "1"}', "string into Go struct field PodSpec.spec.priority of type int32"),
        ('{"priority": 1.5}', "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        ('{"priority": 3000000000}', "number 3000000000 into Go struct field PodSpec.spec.priority of type int32"),
        ('{"priority": true}', "bool into Go struct field PodSpec.spec.priority of type int32"),
        ('{"containers": {}}', "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ('{"containers": ["x"]}', "string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ('{"nodeSelector": {"a": 1}}', "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ('{"nodeSelector": []}', "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
        (
            '{"volumes": [{"emptyDir": 3}]}',
            "number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            '{"containers": [{"imagePullPolicy": 1}]}',
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_the_words_of_go(value: str, said: str) -> None:
    with pytest.raises(UnmarshalError) as caught:
        spec(value)

    assert caught.value.text == f"json: cannot unmarshal {said}"


def test_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnmarshalError) as caught:
        shape("v1/Pod", '{"spec": []}')

    assert caught.value.text == "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"
