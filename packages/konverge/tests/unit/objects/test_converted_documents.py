"""An object that is made of a document is the one that is decoded from its bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import DecodeError
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Pod, Secret
from konverge.objects import Resource, Unstructured, decode, decode_with_document

MANAGED = {
    "manager": "shop",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2026-01-02T03:04:05Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:replicas": {}, 'k:{"name":"a"}': {".": {}}}},
}
PARTS: dict[type[Resource], Any] = {
    Deployment: {
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {}, "unknown": [1.5, {}]}
    },
    Pod: {
        "spec": {
            "containers": [
                {"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": 5}}, "ports": [{"containerPort": 80}]}
            ],
            "volumes": None,
        },
        "status": {"startTime": "2026-01-02T03:04:05Z", "conditions": None, "phase": "Running"},
    },
    Secret: {"data": {"password": "c2VjcmV0"}, "type": "Opaque"},
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, width=32)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
metadata = st.fixed_dictionaries(
    {"name": st.just("web"), "resourceVersion": st.just("7"), "uid": st.just("u")},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")) | st.none(),
        "creationTimestamp": st.just("2026-01-02T03:04:05Z") | st.none(),
        "managedFields": st.lists(st.just(MANAGED) | st.just({"manager": "x"}), max_size=2) | st.none(),
        "generation": st.integers(0, 9) | st.just("9"),
        "unknown": values,
    },
)


def result(read: Any) -> Any:
    try:
        return read()
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize("type_", PARTS, ids=lambda type_: type_.__name__)
@given(
    metadata=metadata, more=st.dictionaries(st.sampled_from(["spec", "status", "data", "other"]), values, max_size=1)
)
def test_it_equals_the_decoded_one(type_: type[Resource], metadata: Any, more: Any) -> None:
    raw = msgspec.json.encode(
        {"kind": type_.__name__, "apiVersion": "v1", "metadata": metadata, **PARTS[type_], **more}
    )

    decoded = result(lambda: decode(type_, raw))
    converted = result(lambda: decode_with_document(type_, raw)[0])

    assert converted == decoded
    if isinstance(decoded, Resource):
        assert converted.source == decoded.source == raw
        assert [one.fields() for one in converted.metadata.managed_fields] == [
            one.fields() for one in decoded.metadata.managed_fields
        ]


def test_an_unstructured_object_is_the_document_itself() -> None:
    obj, document = decode_with_document(Unstructured, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}')
    assert obj is document
    assert obj.name == "a"


def test_what_is_not_an_object_is_an_error() -> None:
    for raw in (b"[]", b"1", b"{", b"\xff"):
        with pytest.raises(DecodeError):
            decode_with_document(Unstructured, raw)
