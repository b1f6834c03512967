"""Names in generated code."""

from __future__ import annotations

import keyword

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.codegen.identifiers import Names, attributes_of, can_be_field, class_word
from konverge.objects.models import ModelMeta
from konverge.objects.resources import Resource

WIRES = st.lists(st.one_of(st.text(max_size=8), st.from_regex(r"[a-zA-Z$_-]{1,8}", fullmatch=True)), unique=True)


@settings(max_examples=200)
@given(WIRES)
def test_attributes_are_valid_and_unique(wires: list[str]) -> None:
    attributes = attributes_of(wires)

    assert list(attributes) == wires
    assert len(set(attributes.values())) == len(wires)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in attributes.values())


@settings(max_examples=200)
@given(st.text(min_size=1, max_size=8).filter(can_be_field))
def test_every_accepted_wire_name_can_be_a_field(wire: str) -> None:
    (attribute,) = attributes_of([wire]).values()
    source = f"class M(Model):\n    {attribute}: int | None = field(default=None, name={wire!r})\n"
    space: dict[str, object] = {}
    exec("from konverge.objects.models import Model, field\n" + source, space)
    model = space["M"]

    assert isinstance(model, ModelMeta)
    assert model.__struct_encode_fields__ == (wire,)
    assert model.__struct_fields__ == (attribute,)


def test_names_of_the_class_body_are_not_hidden() -> None:
    assert attributes_of(["bool", "field", "list"]) == {"bool": "bool_", "field": "field_", "list": "list_"}


def test_attributes_of_every_object_are_not_hidden() -> None:
    attributes = attributes_of(["source", "name", "spec"], resource=True)

    assert attributes == {"source": "source_", "name": "name_", "spec": "spec"}
    assert not set(attributes.values()) & set(dir(Resource))
    assert attributes_of(["source"]) == {"source": "source"}


def test_names_that_collide_are_numbered_in_order() -> None:
    assert attributes_of(["fooBar", "foo_bar", "foo-bar"]) == {
        "fooBar": "foo_bar",
        "foo_bar": "foo_bar_2",
        "foo-bar": "foo_bar_3",
    }


def test_a_name_is_claimed_once() -> None:
    names = Names(["Model"])

    assert [names.claim("Widget"), names.claim("Widget"), names.claim("Widget", "MyWidget")] == [
        "Widget",
        "Widget2",
        "MyWidget",
    ]
    assert names.claim("Model") == "Model2"
    assert names.claim("Ipv4") == "Ipv4"
    assert names.claim("Ipv4") == "Ipv4_2"


def test_class_words_start_with_a_capital() -> None:
    assert [class_word(text) for text in ("privateKey", "x-y", "None", "日本", "été")] == [
        "PrivateKey",
        "XY",
        "None_",
        "",
        "Ete",
    ]
