"""Documents are decoded as the Go structs of the built-in kinds do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge_cluster.builtins.structs import kind_decoder, struct_decoder
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError


def decode(kind: str, text: str) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    api_version, _, name = kind.rpartition("/")
    return kind_decoder(api_version, name)(json.loads(text), unknown), unknown


def spec(text: str) -> Any:
    return decode("v1/Pod", f'{{"spec": {text}}}')[0]["spec"]


def test_empty_and_null_fields_are_removed() -> None:
    document, _ = decode("v1/ConfigMap", '{"data": {}, "binaryData": null, "immutable": null}')

    assert document == {}


def test_pointers_keep_their_zero() -> None:
    assert decode("v1/ConfigMap", '{"immutable": false}')[0] == {"immutable": False}
    assert spec('{"containers": null, "priority": 0, "hostNetwork": false}') == {"containers": None, "priority": 0}


def test_structs_are_always_present() -> None:
    assert decode("v1/Pod", "{}")[0] == {"spec": {"containers": None}, "status": {}}
    assert spec('{"containers": [{}]}') == {"containers": [{"name": "", "resources": {}}]}


def test_an_empty_list_that_is_always_printed_is_null() -> None:
    assert decode("rbac.authorization.k8s.io/v1/Role", '{"rules": []}')[0] == {"rules": None}


def test_unknown_fields_are_removed_and_reported_with_their_paths() -> None:
    text = '{"a": 1, "spec": {"b": 1, "containers": [{"c": 1, "env": [{"name": "x", "d": 1}]}]}}'
    document, unknown = decode("v1/Pod", text)

    assert unknown == ["a", "spec.b", "spec.containers[0].c", "spec.containers[0].env[0].d"]
    assert document["spec"]["containers"][0]["env"] == [{"name": "x"}]


def test_unknown_fields_in_map_values_are_reported() -> None:
    text = '{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"x": {"foo": 1}}}}}]}}'
    _, unknown = decode("apiextensions.k8s.io/v1/CustomResourceDefinition", text)

    assert unknown == ["spec.versions[0].schema.openAPIV3Schema.properties.x.foo"]


def test_unknown_fields_are_ignored_by_types_with_their_own_unmarshaler() -> None:
    text = '{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": {"foo": 1, "type": "string"}}}}]}}'
    document, unknown = decode("apiextensions.k8s.io/v1/CustomResourceDefinition", text)

    assert unknown == []
    assert document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"items": {"type": "string"}}


def test_quantities_are_canonical() -> None:
    resources = spec('{"containers": [{"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi", "x/y": 2}}}]}')

    assert resources["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "x/y": "2"}


def test_times_are_in_utc_and_whole_seconds() -> None:
    document, _ = decode("v1/Pod", '{"status": {"startTime": "2026-01-01T02:00:00.75+02:00"}}')

    assert document["status"] == {"startTime": "2026-01-01T00:00:00Z"}


def test_api_version_kind_and_metadata_of_an_object_are_unchanged() -> None:
    document, unknown = decode("v1/ConfigMap", '{"kind": "X", "apiVersion": "y", "metadata": {"foo": 1}}')

    assert document == {"kind": "X", "apiVersion": "y", "metadata": {"foo": 1}}
    assert unknown == []


def test_the_metadata_of_a_template_is_decoded() -> None:
    metadata = struct_decoder("v1.ObjectMeta")({"labels": {}, "name": "", "creationTimestamp": None, "uid": "u"}, [])

    assert metadata == {"uid": "u"}


@pytest.mark.parametrize(
    ("value", "message"),
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
def test_a_value_of_the_wrong_type_is_rejected_with_the_text_of_go(value: str, message: str) -> None:
    with pytest.raises(UnmarshalError) as caught:
        spec(value)

    assert caught.value.text == f"json: cannot unmarshal {message}"


def test_an_array_in_place_of_an_object_is_rejected() -> None:
    with pytest.raises(UnmarshalError) as caught:
        decode("v1/Pod", '{"spec": []}')

    assert caught.value.text == "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"
