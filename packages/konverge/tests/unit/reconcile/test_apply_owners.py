"""What is wanted, made ready: where it goes, who owns it, and what is refused before it does harm."""

from __future__ import annotations

import copy

import pytest

from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.objects import AnyObject, ObjectMeta, OwnerReference, Unstructured, decode, kind_of, to_wire, whole
from konverge.reconcile.owner_references import made_ready

MAPS, NAMESPACES = kind_of(ConfigMap), kind_of(Namespace)


def config_map(namespace: str | None = None, name: str | None = "child", **metadata: object) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **metadata))  # type: ignore[arg-type]


OWNER = config_map("shop", "owner", uid="uid-owner")
CLUSTER_OWNER = Namespace(metadata=ObjectMeta(name="shop", uid="uid-shop"))


def ready(desired: AnyObject, owner: AnyObject | None = None) -> AnyObject:
    kind = NAMESPACES if desired.kind == "Namespace" else MAPS
    return made_ready(desired, kind, owner=owner, namespace="default")


def test_a_child_goes_to_its_owners_namespace_and_what_was_given_stays_as_it_is() -> None:
    desired = config_map()
    before = copy.deepcopy(desired)
    made = ready(desired, OWNER)
    assert made.namespace == "shop"
    assert whole(made)["metadata"]["ownerReferences"] == [
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


def test_an_untyped_child_is_made_ready_alike() -> None:
    desired = Unstructured(to_wire(config_map()))
    made = ready(desired, OWNER)
    assert made == whole(ready(config_map(), OWNER))
    assert "ownerReferences" not in desired["metadata"]


def test_fields_that_the_class_does_not_know_are_kept() -> None:
    desired = decode(ConfigMap, b'{"metadata":{"name":"child","odd":1},"data":{"a":"1"},"new":{"x":1}}')
    made = whole(ready(desired, OWNER))
    assert (made["metadata"]["odd"], made["metadata"]["namespace"], made["new"]) == (1, "shop", {"x": 1})
    assert len(made["metadata"]["ownerReferences"]) == 1


def test_without_an_owner_it_goes_where_it_says_or_where_the_client_is() -> None:
    assert ready(config_map()).namespace == "default"
    assert ready(config_map("shop")).namespace == "shop"
    assert ready(Namespace(metadata=ObjectMeta(name="x"))).namespace == ""


def test_references_to_others_stay_and_one_to_the_owner_is_not_doubled() -> None:
    other = OwnerReference(api_version="v1", kind="Secret", name="s", uid="uid-s")
    old = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid="uid-owner")
    made = whole(ready(config_map(owner_references=[old, other]), OWNER))
    assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == ["uid-s", "uid-owner"]


@pytest.mark.parametrize(
    ("desired", "owner", "words"),
    [
        (config_map("other"), OWNER, "different namespaces"),
        (Namespace(metadata=ObjectMeta(name="x")), OWNER, "no cluster-scoped"),
        (config_map(), CLUSTER_OWNER, "say in which namespace"),
        (config_map(), config_map("shop", "owner"), "has no uid"),
        (config_map(name=None), OWNER, "has no name"),
        (config_map(resource_version="7"), OWNER, "was read from the server"),
        (
            config_map(
                owner_references=[
                    OwnerReference(api_version="v1", kind="Secret", name="s", uid="uid-s", controller=True)
                ]
            ),
            OWNER,
            "names Secret s as its controller already",
        ),
    ],
    ids=["cross-namespace", "cluster child", "where", "owner not read", "no name", "read", "two controllers"],
)
def test_what_would_do_harm_is_refused_and_says_why(desired: AnyObject, owner: AnyObject, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ready(desired, owner)


def test_a_cluster_scoped_owner_owns_in_any_namespace_and_cluster_wide() -> None:
    assert ready(config_map("shop"), CLUSTER_OWNER).namespace == "shop"
    other = ready(Namespace(metadata=ObjectMeta(name="x")), CLUSTER_OWNER)
    assert whole(other)["metadata"]["ownerReferences"][0]["uid"] == "uid-shop"
