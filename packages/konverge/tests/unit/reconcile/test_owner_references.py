"""The namespace and the owner of an applied object, and what is rejected before it does harm."""

from __future__ import annotations

import copy
import json
import re

import pytest

from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.objects import AnyObject, ObjectMeta, OwnerReference, Unstructured, decode, full_object, kind_of, to_wire
from konverge.reconcile.owner_references import (
    has_owner_of_same_name,
    other_controller,
    references_of,
    with_namespace_and_owner,
)

MAPS, NAMESPACES = kind_of(ConfigMap), kind_of(Namespace)


def config_map(namespace: str | None = None, name: str | None = "child", **metadata: object) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **metadata))  # type: ignore[arg-type]


OWNER = config_map("shop", "owner", uid="uid-owner")
CLUSTER_OWNER = Namespace(metadata=ObjectMeta(name="shop", uid="uid-shop"))


def prepared(desired: AnyObject, owner: AnyObject | None = None) -> AnyObject:
    kind = NAMESPACES if desired.kind == "Namespace" else MAPS
    return with_namespace_and_owner(desired, kind, owner=owner, namespace="default")


def test_a_child_gets_the_namespace_of_its_owner_and_the_argument_is_unchanged() -> None:
    desired = config_map()
    before = copy.deepcopy(desired)
    result = prepared(desired, OWNER)
    assert result.namespace == "shop"
    assert full_object(result)["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": "uid-owner",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert desired == before


def test_an_unstructured_child_is_prepared_alike() -> None:
    desired = Unstructured(to_wire(config_map()))
    result = prepared(desired, OWNER)
    assert result == full_object(prepared(config_map(), OWNER))
    assert "ownerReferences" not in desired["metadata"]


def test_fields_that_the_class_does_not_know_are_kept() -> None:
    desired = decode(ConfigMap, b'{"metadata":{"name":"child","odd":1},"data":{"a":"1"},"new":{"x":1}}')
    result = full_object(prepared(desired, OWNER))
    assert (result["metadata"]["odd"], result["metadata"]["namespace"], result["new"]) == (1, "shop", {"x": 1})
    assert len(result["metadata"]["ownerReferences"]) == 1


def test_without_an_owner_the_default_namespace_is_that_of_the_client() -> None:
    assert prepared(config_map()).namespace == "default"
    assert prepared(config_map("shop")).namespace == "shop"
    assert prepared(Namespace(metadata=ObjectMeta(name="x"))).namespace == ""


def test_references_to_others_are_kept_and_one_to_the_owner_is_not_doubled() -> None:
    other = OwnerReference(api_version="v1", kind="Secret", name="s", uid="uid-s")
    old = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid="uid-owner")
    result = full_object(prepared(config_map(owner_references=[old, other]), OWNER))
    assert [one["uid"] for one in result["metadata"]["ownerReferences"]] == ["uid-s", "uid-owner"]


@pytest.mark.parametrize(
    ("desired", "owner", "words"),
    [
        (
            config_map("other"),
            OWNER,
            "ConfigMap shop/owner cannot own ConfigMap other/child: they are in different namespaces, the garbage"
            " collector would delete it (apply it with owned=False, and delete it in finalize)",
        ),
        (
            Namespace(metadata=ObjectMeta(name="x")),
            OWNER,
            "ConfigMap shop/owner cannot own Namespace x: a namespaced object owns no cluster-scoped one, the garbage"
            " collector would delete it (apply it with owned=False, and delete it in finalize)",
        ),
        (
            config_map(),
            CLUSTER_OWNER,
            "apply ConfigMap child: its owner Namespace shop is cluster-scoped, so its namespace is not known (set"
            " metadata.namespace)",
        ),
        (
            config_map(),
            config_map("shop", "owner"),
            "ConfigMap shop/owner has no uid: an owner must be an object that was read from the server",
        ),
        (config_map(name=None), OWNER, "apply ConfigMap: it has no name (the server generates names only on create)"),
        (
            config_map(resource_version="7"),
            OWNER,
            "apply ConfigMap child: this object was read from the server, and applying it would take over all its"
            " fields (apply a new object with only your fields, or edit this one with client.update)",
        ),
        (
            config_map(
                owner_references=[
                    OwnerReference(api_version="v1", kind="Secret", name="s", uid="uid-s", controller=True)
                ]
            ),
            OWNER,
            "ConfigMap shop/owner cannot own ConfigMap shop/child: its owner references name Secret s as its"
            " controller, and an object has only one (leave that reference out, or apply with owned=False)",
        ),
    ],
    ids=["cross-namespace", "cluster child", "no namespace", "owner not read", "no name", "read", "two controllers"],
)
def test_an_invalid_owner_is_rejected_with_a_reason(desired: AnyObject, owner: AnyObject, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        prepared(desired, owner)


def test_a_cluster_scoped_owner_owns_in_any_namespace_and_cluster_wide() -> None:
    assert prepared(config_map("shop"), CLUSTER_OWNER).namespace == "shop"
    other = prepared(Namespace(metadata=ObjectMeta(name="x")), CLUSTER_OWNER)
    assert full_object(other)["metadata"]["ownerReferences"][0]["uid"] == "uid-shop"


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"uid": "uid-owner"}, False),
        ({"controller": None}, False),
        ({"kind": "Secret"}, False),
        ({"name": "other"}, False),
    ],
)
def test_an_earlier_owner_of_the_same_name_is_recognised(change: dict[str, object], same: bool) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-earlier", "controller": True}
    found = decode(OwnerReference, json.dumps({**reference, **change}).encode())
    assert has_owner_of_same_name([found], OWNER) is same


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"uid": "uid-owner"}, False),
        ({"controller": None}, False),
        ({"name": "owner"}, False),
        ({"name": "owner", "kind": "ConfigMap"}, False),
        ({"name": "owner", "kind": "Secret"}, True),
        ({"kind": "ConfigMap"}, True),
    ],
)
def test_another_controller_is_one_with_another_kind_or_name(change: dict[str, object], found: bool) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "uid-other", "controller": True}
    one = decode(OwnerReference, json.dumps({**reference, **change}).encode())
    assert other_controller([one], OWNER) == (one if found else None)


def test_references_are_read_from_both_kinds_of_objects() -> None:
    reference = OwnerReference(api_version="v1", kind="Secret", name="s", uid="uid-s")
    obj = config_map(owner_references=[reference])
    assert references_of(obj) == references_of(Unstructured(to_wire(obj))) == [reference]
    assert references_of(Unstructured({"metadata": {"ownerReferences": None}})) == []
