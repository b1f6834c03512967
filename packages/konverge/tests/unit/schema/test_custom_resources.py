"""Classes of custom resources: their fields, decoding and encoding."""

from __future__ import annotations

from typing import Annotated, Any, assert_type

import pytest

from call_counts import count_calls
from konverge.objects.codec import decode, encode, to_wire
from konverge.objects.edits import difference
from konverge.objects.keys import Key
from konverge.objects.kinds import Kind, Scope
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field
from konverge.objects.resources import kind_of
from konverge.schema import (
    CustomResource,
    Meta,
    NoStatus,
    Rule,
    Spec,
    Status,
    Violation,
    definition_of,
    root_schema,
    validate,
)


class PortSpec(Spec):
    number: int
    protocol: str = "TCP"


class ShopSpec(Spec):
    image: str
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    ports: list[PortSpec] = field(default_factory=list)
    marker: str | None = None


class ShopStatus(Status):
    available_replicas: int = 0
    phase: str = "Pending"


class Shop(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1", short_names=("sh",)):
    """A shop."""


class Settings(CustomResource[ShopSpec], group="example.com", version="v1", scope=Scope.CLUSTER):
    """A kind without status."""


class OptionalSpec(Spec):
    size: int = 3


class Relaxed(CustomResource[OptionalSpec], group="example.com", version="v1"):
    markers: dict[str, str] = field(default_factory=dict)


def shop(**spec: Any) -> Shop:
    return Shop(metadata=ObjectMeta(name="one", namespace="default"), spec=ShopSpec(image="a", **spec))


def test_a_class_is_a_kind() -> None:
    assert kind_of(Shop) == Kind("example.com", "v1", "Shop", "shops")
    assert kind_of(Settings).scope is Scope.CLUSTER
    assert definition_of(Shop).short_names == ("sh",)
    assert shop().key == Key("default", "one")


def test_a_new_object_has_a_name_and_a_spec() -> None:
    shop = Shop.new("web", ShopSpec(image="web:1"))

    assert_type(shop, Shop)
    assert shop == Shop(metadata=ObjectMeta(name="web"), spec=ShopSpec(image="web:1"))
    assert to_wire(shop)["metadata"] == {"name": "web"}


def test_a_new_object_has_a_namespace_labels_and_annotations_of_its_own() -> None:
    labels = {"app": "web"}
    shop = Shop.new(
        "web", ShopSpec(image="web:1"), namespace="shop", labels=labels, annotations={"example.com/by": "hand"}
    )
    labels["app"] = "other"

    assert shop.key == Key("shop", "web")
    assert shop.metadata.labels == {"app": "web"}
    assert shop.metadata.annotations == {"example.com/by": "hand"}


def test_a_new_object_needs_a_spec_unless_all_its_fields_have_defaults() -> None:
    class OptionalSpec(Spec):
        size: int = 1

    class Optional(CustomResource[OptionalSpec], group="example.com", version="v1"):
        """A kind whose spec can be left out."""

    assert Optional.new("it").spec.size == 1
    with pytest.raises(TypeError, match="spec"):
        Shop.new("web")


def test_spec_and_status_have_their_own_types() -> None:
    created = shop()
    assert_type(created.spec, ShopSpec)
    assert_type(created.spec.replicas, int)
    assert_type(created.spec.ports, list[PortSpec])
    assert_type(created.status, ShopStatus)
    assert_type(created.status.available_replicas, int)
    assert_type(Settings(spec=ShopSpec(image="a")).status, NoStatus)
    assert created.spec.replicas == 1


def test_an_object_without_a_status_has_an_empty_one() -> None:
    read = decode(Shop, b'{"apiVersion":"example.com/v1","kind":"Shop","spec":{"image":"a"}}')

    read.status.available_replicas = 2

    assert difference(read) == {"status": {"availableReplicas": 2}}


def test_a_new_object_is_encoded_without_a_status() -> None:
    assert encode(shop()) == (
        b'{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"one","namespace":"default"},'
        b'"spec":{"image":"a","replicas":1}}'
    )


def test_a_status_that_returns_to_its_defaults_is_not_removed() -> None:
    source = b'{"spec":{"image":"a"},"status":{"availableReplicas":3,"phase":"Pending","unknown":1}}'
    read = decode(Shop, source)

    read.status.available_replicas = 0

    assert difference(read)["status"] == {"availableReplicas": None}


def test_an_empty_status_that_is_not_edited_does_not_change() -> None:
    read = decode(Shop, b'{"apiVersion":"example.com/v1","kind":"Shop","spec":{"image":"a"},"status":{"unknown":1}}')

    read.spec.replicas = 2

    assert difference(read) == {"spec": {"replicas": 2}}


def test_a_spec_encodes_its_defaults_and_omits_absent_fields() -> None:
    written = to_wire(shop(ports=[PortSpec(number=80)]).spec)

    assert written == {"image": "a", "replicas": 1, "ports": [{"number": 80, "protocol": "TCP"}]}


def test_a_status_and_a_plain_model_omit_their_defaults() -> None:
    class Plain(Model):
        size: int = 3

    assert to_wire(ShopStatus(phase="Running")) == {"phase": "Running"}
    assert to_wire(Plain()) == {}


def test_a_default_of_a_spec_may_have_its_own_wire_name() -> None:
    class Named(Spec):
        cpu: str = field(default="1", name="theCPU")
        empty: str | None = field(default=None, name="theEmpty")

    assert to_wire(Named()) == {"theCPU": "1"}
    assert Named().cpu == "1"


def test_a_spec_without_required_fields_is_optional() -> None:
    assert decode(Relaxed, b"{}").spec == OptionalSpec()
    assert root_schema(Relaxed)["properties"]["spec"]["default"] == {"size": 3}
    assert "required" not in root_schema(Relaxed)


def test_a_spec_with_rules_is_required() -> None:
    class Ruled(Spec, rules=[Rule("self.size > 5")]):
        size: int = 3

    class Strict(CustomResource[Ruled], group="example.com", version="v1"): ...

    assert root_schema(Strict)["required"] == ["spec"]


def test_a_field_beside_the_spec_belongs_to_the_kind_and_the_status_stays_last() -> None:
    assert list(root_schema(Relaxed)["properties"]) == ["apiVersion", "kind", "metadata", "spec", "markers"]
    assert Relaxed.__struct_fields__[-1] == "status"


def test_a_field_cannot_hide_an_attribute_of_every_object() -> None:
    with pytest.raises(
        TypeError, match=r"'name' is an attribute of every object \(write name_: its wire name is 'name' too\)"
    ):

        class Hiding(CustomResource[OptionalSpec], group="example.com", version="v1"):
            name: str = ""

    class Named(CustomResource[OptionalSpec], group="example.com", version="v1"):
        name_: str = ""

    named = Named(metadata=ObjectMeta(name="real"), spec=OptionalSpec(), name_="shown")
    assert (named.name, to_wire(named)["name"]) == ("real", "shown")


def test_an_object_is_validated_without_a_server() -> None:
    wrong = shop(replicas=101, ports=[PortSpec(number=80), PortSpec(number="x")])  # type: ignore[arg-type]

    assert validate(shop()) == []
    assert validate(wrong) == [
        Violation(".spec.replicas", "101 is not at most 100"),
        Violation(".spec.ports[1].number", "expected integer, got string"),
    ]
    assert str(validate(wrong)[0]) == "101 is not at most 100, at .spec.replicas"


def test_classes_in_a_function_may_refer_to_each_other_in_any_order() -> None:
    class Outer(Spec):
        inners: list[Inner]
        by_name: dict[str, Inner] = field(default_factory=dict)

    class Inner(Spec):
        size: int

    class Local(CustomResource[Outer], group="example.com", version="v1"): ...

    assert decode(Local, b'{"spec":{"inners":[{"size":1}]}}').spec.inners == [Inner(size=1)]


def test_rules_and_options_are_inherited() -> None:
    class Parent(Spec, atomic=True, preserve_unknown=True):
        size: int = 1

    class Child(Parent):
        name: str = "a"

    class Heir(CustomResource[Child], group="example.com", version="v1"): ...

    spec = root_schema(Heir)["properties"]["spec"]
    assert spec["x-kubernetes-map-type"] == "atomic"
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert list(spec["properties"]) == ["size", "name"]


def test_creating_a_class_costs_few_calls() -> None:
    """Of functions of Python, about half a millisecond: an operator creates all its classes at import."""

    def create() -> None:
        class Quick(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1"): ...

    assert count_calls(create) <= 1_500


@pytest.mark.parametrize("wrong", ["available", "replica"])
def test_the_error_for_an_unknown_attribute_names_the_status(wrong: str) -> None:
    with pytest.raises(AttributeError, match=f"ShopStatus has no {wrong!r}"):
        getattr(shop().status, wrong)
