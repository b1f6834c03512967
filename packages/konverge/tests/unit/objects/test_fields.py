"""Field selectors: parsed, matched and printed as the server does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.fields import FieldRequirement, FieldSelector

names = st.sampled_from(["metadata.name", "status.phase", "spec.nodeName", "x"])
values = st.text(st.sampled_from("ab\\,=! é"), max_size=6)
requirements = st.builds(FieldRequirement, names, values, st.booleans())
selectors = st.lists(requirements, max_size=4).map(lambda some: FieldSelector(tuple(some)))
field_sets = st.dictionaries(names, values, max_size=4)


def test_fields_are_compared_for_equality() -> None:
    selector = FieldSelector.parse("metadata.name=web,status.phase!=Running")

    assert selector.matches({"metadata.name": "web", "status.phase": "Pending"})
    assert not selector.matches({"metadata.name": "web", "status.phase": "Running"})
    assert selector.fields == {"metadata.name", "status.phase"}


def test_an_absent_field_is_the_empty_string() -> None:
    assert FieldSelector.parse("spec.nodeName=").matches({})
    assert not FieldSelector.parse("spec.nodeName!=").matches({})
    assert FieldSelector.parse("spec.nodeName!=node-1").matches({})


def test_an_empty_selector_selects_everything() -> None:
    assert FieldSelector.parse("") == FieldSelector()
    assert FieldSelector().matches({})


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("b=1,a=2", "a=2,b=1"),
        ("a==b", "a=b"),
        (",a=b,,", "a=b"),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("a!=b", "a!=b"),
        ("a=!b", "a=!b"),
    ],
)
def test_a_string_is_rendered_as_the_server_renders_it(text: str, rendered: str) -> None:
    assert str(FieldSelector.parse(text)) == rendered


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a!==b", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_an_invalid_string_raises_the_message_of_the_server(text: str, answer: str) -> None:
    with pytest.raises(ValueError) as caught:
        FieldSelector.parse(text)
    assert str(caught.value) == answer


@given(selectors)
def test_every_selector_is_read_back_from_its_string(selector: FieldSelector) -> None:
    assert FieldSelector.parse(str(selector)) == selector


@given(selectors, field_sets)
def test_the_string_selects_what_the_selector_selects(selector: FieldSelector, fields: dict[str, str]) -> None:
    assert FieldSelector.parse(str(selector)).matches(fields) == selector.matches(fields)


@given(field_sets)
def test_fields_select_an_object_that_has_them(fields: dict[str, str]) -> None:
    assert FieldSelector.of(fields).matches(fields)


@pytest.mark.parametrize("name", ["", "a=b", "a,b", "a\\b", "a!"])
def test_a_name_that_cannot_be_a_field_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="write a wire path"):
        FieldSelector.of({name: "x"})
