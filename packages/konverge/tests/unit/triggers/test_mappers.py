from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, Kind, Scope, Unstructured
from konverge.triggers import CacheReader, to_keys, to_owner, to_referring, to_self
from trigger_objects import POD, added, deleted, document, updated

WEBAPP = Kind("example.com", "v2", "WebApp", "webapps")
TENANT = Kind("example.com", "v1", "Tenant", "tenants", Scope.CLUSTER)


def owner(name: str, *, kind: str = "WebApp", version: str = "example.com/v2", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True} | more


def owned(*owners: dict[str, Any]) -> dict[str, Any]:
    return document(metadata={"ownerReferences": list(owners)}, spec={})


references = st.lists(
    st.builds(
        owner,
        st.sampled_from(["a", "b", "c"]),
        kind=st.sampled_from(["WebApp", "Tenant"]),
        version=st.sampled_from(["example.com/v1", "example.com/v2", "other.io/v1", "v1"]),
        controller=st.sampled_from([True, False, None]),
    ),
    max_size=4,
)


@settings(max_examples=100)
@given(references, references, st.booleans())
def test_owners_of_the_old_and_the_new_state_are_each_enqueued_once(
    old: list[dict[str, Any]], new: list[dict[str, Any]], controller_only: bool
) -> None:
    def meant(kind: str) -> set[str]:
        return {
            one["name"]
            for one in [*old, *new]
            if one["kind"] == kind
            and one["apiVersion"].startswith("example.com/")
            and (one["controller"] or not controller_only)
        }

    event = updated(owned(*old), owned(*new))
    apps = list(to_owner(WEBAPP, controller_only=controller_only)(event))
    tenants = list(to_owner(TENANT, controller_only=controller_only)(event))

    assert sorted(apps) == sorted(Key("shop", name) for name in meant("WebApp"))
    assert sorted(tenants) == sorted(Key("", name) for name in meant("Tenant"))


def test_an_owner_in_another_version_of_the_group_is_found() -> None:
    event = added(owned(owner("a", version="example.com/v1beta1")))
    assert list(to_owner(WEBAPP)(event)) == [Key("shop", "a")]


def test_an_owner_of_the_same_kind_in_another_group_is_ignored() -> None:
    event = added(
        owned(owner("a", kind="Deployment", version="extensions/v1"), owner("b", kind="Deployment", version="v1"))
    )
    assert list(to_owner(Deployment)(event)) == []


def test_a_deleted_child_enqueues_its_owner() -> None:
    assert list(to_owner(WEBAPP)(deleted(owned(owner("a"))))) == [Key("shop", "a")]


def test_an_owner_that_is_no_longer_controller_is_enqueued() -> None:
    event = updated(owned(owner("a")), owned(owner("a", controller=False)))
    assert list(to_owner(WEBAPP)(event)) == [Key("shop", "a")]


def test_a_cluster_scoped_owner_has_no_namespace() -> None:
    event = added(owned(owner("t", kind="Tenant")))
    assert list(to_owner(TENANT)(event)) == [Key("", "t")]


def test_unreadable_owner_references_enqueue_nothing() -> None:
    broken = document(metadata={"ownerReferences": [{"uid": "x", "name": 5}]})
    assert list(to_owner(WEBAPP)(added(broken))) == []


def test_an_object_is_mapped_to_itself_once() -> None:
    assert list(to_self()(updated(document(), document()))) == [Key("shop", "web")]
    assert list(to_self()(deleted(document()))) == [Key("shop", "web")]


def nodes_of(pod: Pod) -> list[Key]:
    return [Key("", pod.spec.node_name)] if pod.spec and pod.spec.node_name else []


def test_a_function_maps_the_old_and_the_new_state() -> None:
    one, two = (document(spec={"nodeName": name, "containers": []}) for name in ("one", "two"))
    mapper = to_keys(nodes_of, Pod)

    assert list(mapper(updated(one, two))) == [Key("", "two"), Key("", "one")]
    assert list(mapper(updated(one, one))) == [Key("", "one")]
    assert list(mapper(deleted(one))) == [Key("", "one")]


def test_a_function_of_an_unstructured_object() -> None:
    def names(obj: Unstructured) -> list[Key]:
        return [Key("", name) for name in obj["spec"]["names"]]

    event = added(document(spec={"names": ["a", "b", "a"]}))
    assert list(to_keys(names, POD)(event)) == [Key("", "a"), Key("", "b")]
    assert list(to_keys(names, Unstructured)(event)) == [Key("", "a"), Key("", "b")]


def test_an_undecodable_state_does_not_hide_the_other(caplog: pytest.LogCaptureFixture) -> None:
    misfit = document(spec={"nodeName": 5, "containers": []})
    fits = document(spec={"nodeName": "one", "containers": []})

    with caplog.at_level(logging.ERROR):
        keys = list(to_keys(nodes_of, Pod)(updated(misfit, fits)))

    assert keys == [Key("", "one")]
    assert [record.message for record in caplog.records] == ["mapper failed"]


@pytest.mark.parametrize("answer", ["shop/web", ["shop/web"], None, Key("shop", "web")])
def test_a_result_that_is_not_a_list_of_keys_is_logged(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert list(to_keys(lambda _: answer, Unstructured)(added(document()))) == []
    assert caplog.records


def test_a_mapper_function_receives_its_own_copy() -> None:
    def spoil(obj: Unstructured) -> list[Key]:
        obj["spec"]["names"].append("spoilt")
        return [Key("", str(len(obj["spec"]["names"])))]

    event = added(document(spec={"names": []}))
    assert [list(to_keys(spoil, Unstructured)(event)) for _ in range(2)] == [[Key("", "1")], [Key("", "1")]]


def test_the_repr_of_a_mapper_is_its_source() -> None:
    reprs = [repr(mapper) for mapper in (to_self(), to_owner(WEBAPP), to_keys(nodes_of, Pod))]
    assert reprs == ["to_self()", "to_owner(WebApp)", "to_keys(nodes_of, Pod)"]
    assert repr(to_referring(TENANT, index="profile")) == "to_referring(Tenant, index='profile')"
    assert repr(to_owner(WEBAPP, controller_only=False)) == "to_owner(WebApp, controller_only=False)"


def test_a_function_with_two_arguments_reads_the_cache() -> None:
    def with_default(obj: Unstructured, number: int = 1) -> list[Key]:
        return [Key("", str(number))]

    def with_reader(obj: Unstructured, reader: CacheReader) -> list[Key]:
        return [Key("", type(reader).__name__)]

    event = added(document())
    assert list(to_keys(with_default, Unstructured)(event)) == [Key("", "1")]
    assert list(to_keys(with_reader, Unstructured)(event, CacheReader())) == [Key("", "CacheReader")]
    assert repr(to_keys(with_reader, Unstructured)) == "to_keys(with_reader, Unstructured)"
    with pytest.raises(TypeError, match="does not map: write a function of one argument, or of two"):
        to_keys(lambda a, b, c: [], Unstructured)  # type: ignore[arg-type, misc]


def test_a_read_of_a_kind_that_is_not_declared_says_what_to_add() -> None:
    with pytest.raises(ValueError, match=r"Pod is not declared by this controller: add .owns\(\) or .watches\(\)"):
        CacheReader().get(Pod, "web", namespace="shop")
