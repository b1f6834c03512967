"""The entry of a response that was decoded already is that of its bytes."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.cache.decoder import Decoder
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Kind, decode_unstructured, kind_of

CONFIG_MAP: Kind = kind_of(ConfigMap)

names = st.text("abc<>&\u00e9-", min_size=1, max_size=5)
labels = st.dictionaries(names, names, max_size=3)
managers = st.fixed_dictionaries(
    {
        "manager": st.sampled_from(["shop", "kubectl", "x<y"]),
        "operation": st.sampled_from(["Apply", "Update"]),
        "apiVersion": st.just("v1"),
        "time": st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]),
        "fieldsType": st.just("FieldsV1"),
        "fieldsV1": st.dictionaries(names, st.just({}), max_size=2),
    },
    optional={"subresource": st.just("status")},
)
owners = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Pod"), "name": names, "uid": st.sampled_from(["u1", "u2"])}
)
metadata = st.fixed_dictionaries(
    {"name": names, "resourceVersion": st.integers(1, 10**12).map(str), "uid": names},
    optional={
        "namespace": names,
        "generation": st.integers(0, 5),
        "labels": labels,
        "ownerReferences": st.lists(owners, max_size=2),
        "deletionTimestamp": st.just("2026-01-02T03:04:05Z"),
        "managedFields": st.lists(managers, max_size=3),
    },
)


def go_escaped(text: bytes) -> bytes:
    """Return JSON as a Go server escapes it."""
    return text.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


@given(metadata=metadata, data=labels, escaped=st.booleans(), spaced=st.booleans())
def test_both_entries_are_equal(metadata: Any, data: Any, escaped: bool, spaced: bool) -> None:
    document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
    raw = msgspec.json.encode(document)
    raw = go_escaped(raw) if escaped else raw
    raw = msgspec.json.format(raw, indent=1) if spaced else raw

    read = Decoder(CONFIG_MAP, manager="shop").decode(raw)
    written = Decoder(CONFIG_MAP, manager="shop").decode(raw, document=decode_unstructured(raw))

    assert type(written) is type(read)
    assert written == read
    assert msgspec.json.decode(written.json) == msgspec.json.decode(read.json)


class Unparsed(Decoder):
    """A decoder that must not parse."""

    def _head(self, raw: bytes) -> NoReturn:
        raise AssertionError(f"parsed again: {raw!r}")


@given(metadata=metadata, data=labels)
def test_a_response_as_servers_write_it_is_not_parsed_again(metadata: Any, data: Any) -> None:
    if not metadata.get("managedFields"):
        metadata.pop("managedFields", None)  # no server writes an empty list
    document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
    raw = msgspec.json.encode(document)

    entry = Unparsed(CONFIG_MAP, manager="shop").decode(raw, document=decode_unstructured(raw))

    assert entry == Decoder(CONFIG_MAP, manager="shop").decode(raw)


def test_the_labels_and_owners_of_written_objects_are_stored_once() -> None:
    decoder = Unparsed(CONFIG_MAP)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1"}
    entries = []
    for name in ("a", "b"):
        metadata = {"name": name, "resourceVersion": "1", "uid": name, "labels": {"app": "web"}}
        raw = msgspec.json.encode({"kind": "ConfigMap", "metadata": metadata | {"ownerReferences": [owner]}})
        entries.append(decoder.decode(raw, document=decode_unstructured(raw)))
    first, second = entries
    assert (first.label_map(), first.owners) == ({"app": "web"}, ("u1",))
    assert first.labels is second.labels
    assert first.owners is second.owners


@pytest.mark.parametrize(
    "odd",
    [
        {"name": 7},
        {"resourceVersion": 7},
        {"uid": None},
        {"namespace": 7},
        {"generation": "many"},
        {"labels": ["x"]},
        {"ownerReferences": [7]},
    ],
)
def test_a_response_with_odd_metadata_is_parsed_as_any_other(odd: dict[str, Any]) -> None:
    raw = msgspec.json.encode(
        {"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1", "uid": "u"} | odd}
    )
    with pytest.raises(AssertionError, match="parsed again"):
        Unparsed(CONFIG_MAP).decode(raw, document=decode_unstructured(raw))
