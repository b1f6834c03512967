"""Strategic merge patch: lists merged by key, directives, order, and error texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import Endpoint, PatchError, apply_merge_patch, apply_strategic_patch

Json = dict[str, Any]


def pod(*containers: Json, **spec: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": list(containers), **spec}}}}


def containers_of(obj: Json) -> list[Json]:
    found: list[Json] = obj["spec"]["template"]["spec"]["containers"]
    return found


def patched(deployment: Endpoint, document: Json, patch: Json) -> Json:
    before = copy.deepcopy((document, patch))
    result = apply_strategic_patch(document, patch, topology=deployment.topology)
    assert (document, patch) == before
    return result


def failure(deployment: Endpoint, document: Json, patch: Any) -> tuple[int, str]:
    with pytest.raises(PatchError) as caught:
        apply_strategic_patch(document, patch, topology=deployment.topology)
    return caught.value.code, caught.value.message


def env(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


def test_items_are_merged_by_their_key(deployment: Endpoint) -> None:
    live = pod({"name": "a", "image": "1"}, {"name": "b", "image": "1"})
    result = patched(deployment, live, pod({"name": "b", "image": "2"}))
    assert containers_of(result) == [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]


def test_new_items_come_before_those_of_the_live_list(deployment: Endpoint) -> None:
    live = pod({"name": "a", "env": env("B")})
    result = patched(deployment, live, pod({"name": "a", "env": env("Z")}))
    assert containers_of(result)[0]["env"] == env("Z", "B")


def test_known_items_keep_the_order_of_the_live_list(deployment: Endpoint) -> None:
    live = pod({"name": "a", "env": env("A", "B", "C")})
    result = patched(deployment, live, pod({"name": "a", "env": env("B")}))
    assert containers_of(result)[0]["env"] == env("A", "B", "C")


def test_an_explicit_order_wins(deployment: Endpoint) -> None:
    live = pod({"name": "a", "env": env("A", "B", "C")})
    order = {"name": "a", "$setElementOrder/env": env("C", "A"), "env": [{"name": "A", "value": "1"}]}
    result = patched(deployment, live, pod(order))
    assert containers_of(result)[0]["env"] == [{"name": "B"}, {"name": "C"}, {"name": "A", "value": "1"}]


def test_an_item_is_deleted(deployment: Endpoint) -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert containers_of(patched(deployment, live, pod({"name": "a", "$patch": "delete"}))) == [{"name": "b"}]


def test_a_list_is_replaced(deployment: Endpoint) -> None:
    live = pod({"name": "a"}, {"name": "b"})
    result = patched(deployment, live, pod({"name": "c"}, {"$patch": "replace"}))
    assert containers_of(result) == [{"name": "c"}]


def test_a_map_is_replaced_or_emptied(deployment: Endpoint) -> None:
    live = {"metadata": {"labels": {"a": "1"}, "annotations": {"b": "1"}}}
    patch = {"metadata": {"labels": {"$patch": "replace", "c": "1"}, "annotations": {"$patch": "delete"}}}
    assert patched(deployment, live, patch)["metadata"] == {"labels": {"c": "1"}, "annotations": {}}


def test_keys_that_are_not_retained_are_removed(deployment: Endpoint) -> None:
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(deployment, live, patch)["spec"]["strategy"] == {"type": "Recreate"}


def test_scalars_are_deleted_from_a_list(deployment: Endpoint) -> None:
    live = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}}
    assert patched(deployment, live, patch)["metadata"]["finalizers"] == ["a", "c"]


def test_scalars_are_added_once(deployment: Endpoint) -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    result = patched(deployment, live, {"metadata": {"finalizers": ["c", "b"]}})
    assert result["metadata"]["finalizers"] == ["c", "a", "b"]


def test_a_list_without_a_key_is_replaced(deployment: Endpoint) -> None:
    live = pod(tolerations=[{"key": "a"}])
    result = patched(deployment, live, pod(tolerations=[{"key": "b"}]))
    assert result["spec"]["template"]["spec"]["tolerations"] == [{"key": "b"}]


def test_directives_and_nulls_in_new_values_are_dropped(deployment: Endpoint) -> None:
    new = {"name": "a", "image": None, "env": [{"name": "A", "$patch": "delete"}, {"name": "B", "value": None}]}
    result = patched(deployment, {}, pod(new))
    assert containers_of(result) == [{"name": "a", "env": [{"name": "B"}]}]


def test_a_field_is_found_ignoring_case(deployment: Endpoint) -> None:
    live = {"metadata": {"finalizers": ["a"]}}
    patch = {"metadata": {"$setElementOrder/FINALIZERS": ["a"]}}
    assert patched(deployment, live, patch) == live


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (pod({"image": "x"}), 500, "map: map[image:x] does not contain declared merge key: name"),
        (pod({"$patch": "delete"}), 500, "map: map[$patch:delete] does not contain declared merge key: name"),
        (pod({"name": "a", "$patch": "merge"}), 500, "merging lists cannot yet be specified in the patch"),
        (pod({"name": "a", "$patch": "x"}), 500, "unknown patch type: x in map: map[$patch:x name:a]"),
        ({"spec": {"$patch": "merge"}}, 500, "unknown patch type: merge in map: map[$patch:merge]"),
        ({"$patch": 1}, 500, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["x"], "paused": True}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        ({"spec": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"spec": {"$setElementOrder/x": 1}}, 500, "expected a []interface {}, but received a int64"),
        (
            {"spec": {"$setElementOrder/x": []}},
            500,
            'unable to find api field in struct DeploymentSpec for the json field "x"',
        ),
        ({"metadata": {"$setElementOrder/labels": []}}, 500, "expected slice or array type, but got: struct"),
        (pod("x"), 500, "list element types are not identical: [[map[name:a]] [x]]"),  # type: ignore[arg-type]
        ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_undecodable_patches_fail_with_the_texts_of_the_real_server(
    deployment: Endpoint, patch: Any, code: int, message: str
) -> None:
    live = {"metadata": {}, **pod({"name": "a"})}
    assert failure(deployment, live, patch) == (code, message)


def test_items_that_contradict_the_explicit_order_are_rejected(deployment: Endpoint) -> None:
    patch = pod({"name": "b"}, {"name": "a"})
    patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = env("a", "b")
    code, message = failure(deployment, pod({"name": "a"}), patch)
    assert code == 500
    assert message == (
        "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
        "[map[name:a] map[name:b]]\n"
    )


def test_a_map_inside_a_map_of_maps_cannot_be_merged(schemas: Any) -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    live = {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}
    with pytest.raises(PatchError, match="data type is not struct, instead is: map"):
        apply_strategic_patch(live, live, topology=schemas.topology(name))


names = st.sampled_from("abcd")
items = st.lists(names, max_size=4, unique=True)


@settings(max_examples=60, deadline=None)
@given(items, items, items)
def test_a_merge_keeps_every_item_once(deployment: Endpoint, live: list[str], new: list[str], gone: list[str]) -> None:
    deleted = [{"name": name, "$patch": "delete"} for name in gone if name not in new]
    document, patch = pod(*({"name": name} for name in live)), pod(*({"name": name} for name in new), *deleted)
    result = patched(deployment, document, patch)
    left = [name for name in live if name not in gone or name in new]
    assert sorted(item["name"] for item in containers_of(result)) == sorted(set(left) | set(new))


metadata = st.fixed_dictionaries(
    {}, optional={"labels": st.dictionaries(names, st.sampled_from(["1", "2"])), "name": st.sampled_from(["x", "y"])}
)


@settings(max_examples=60, deadline=None)
@given(metadata, metadata)
def test_without_lists_and_directives_it_is_a_merge_patch(deployment: Endpoint, live: Json, patch: Json) -> None:
    document, change = {"metadata": live}, {"metadata": {**patch, "generateName": None}}
    assert patched(deployment, document, change) == apply_merge_patch(document, change)
