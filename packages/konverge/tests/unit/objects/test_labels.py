"""Label selectors: string form and spec form, parsed, matched and printed as the server does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.labels import LabelRequirement, LabelSelector, Operator

keys = st.sampled_from(["app", "tier", "in", "notin", "example.com/x", "A_1"])
values = st.sampled_from(["", "a", "b", "in", "notin", "5", "12", "007", "x_y.z-1"])
numbers = st.integers(0, 20).map(str)
label_sets = st.dictionaries(keys, st.one_of(values, numbers), max_size=4)
requirements = st.one_of(
    st.builds(
        LabelRequirement,
        keys,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        values.map(lambda value: (value,)),
    ),
    st.builds(
        LabelRequirement,
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelRequirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        LabelRequirement,
        keys,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        numbers.map(lambda number: (number,)),
    ),
)
selectors = st.lists(requirements, max_size=4).map(lambda some: LabelSelector(tuple(some)))


# What the server makes of each string.
RENDERED = {
    "": "",
    "  ": "",
    "a=b": "a=b",
    "a == b": "a==b",
    "z,a": "a,z",
    "! g , h": "!g,h",
    "e in (y,x,y)": "e in (x,y)",
    "f notin(z)": "f notin (z)",
    "x>3,x<7": "x>3,x<7",
    "a=": "a=",
    "a!=,b": "a!=,b",
    "x in ()": "x in ()",
    "x in (,)": "x in ()",
    "x in (a,,b)": "x in (,a,b)",
    "x in (b,)": "x in (,b)",
    "in in (in,notin)": "in in (in,notin)",
    "in=notin": "in=notin",
    "a=b,c!=d,e in (x,y),f notin (z),!g,h": "a=b,c!=d,e in (x,y),f notin (z),!g,h",
}

REFUSED = {
    "=": "found '=', expected: !, identifier, or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "a,,b": "found ',', expected: identifier after ','",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a=b c": "found 'c', expected: ',' or 'end of string'",
    "!a=b": "found '=', expected: ',' or 'end of string'",
    "!": "unable to parse requirement: found '', expected: identifier",
    "!!a": "unable to parse requirement: found '!', expected: identifier",
    "a==(": "unable to parse requirement: found '(', expected: identifier",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in (b c)": "unable to parse requirement: found 'c', expected: ',' or ')'",
    "a in (b,": "unable to parse requirement: found '', expected: ',', or identifier",
    "a in (b,=)": "unable to parse requirement: found '=', expected: ',', or identifier",
    "a>b": (
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an "
        "integer"
    ),
}


@pytest.mark.parametrize(("text", "rendered"), RENDERED.items())
def test_a_string_is_rendered_as_the_server_renders_it(text: str, rendered: str) -> None:
    assert str(LabelSelector.parse(text)) == rendered


@pytest.mark.parametrize(("text", "answer"), REFUSED.items())
def test_an_invalid_string_raises_the_message_of_the_server(text: str, answer: str) -> None:
    with pytest.raises(ValueError) as caught:
        LabelSelector.parse(text)
    assert str(caught.value) == answer


def test_an_invalid_key_or_value_raises_the_message_of_the_server() -> None:
    with pytest.raises(
        ValueError, match=r'^unable to parse requirement: <nil>: Invalid value: "-a": name part must con'
    ):
        LabelSelector.parse("-a=b")
    with pytest.raises(
        ValueError, match=r'^unable to parse requirement: values\[0\]\[a\]: Invalid value: "-b": a valid'
    ):
        LabelSelector.parse("a=-b")
    with pytest.raises(ValueError, match=r"values\[1\]\[a\].*must be no more than 63 bytes"):
        LabelSelector.parse(f"a in (b,{'c' * 64})")


@given(selectors)
def test_every_selector_is_read_back_from_its_string(selector: LabelSelector) -> None:
    assert LabelSelector.parse(str(selector)) == selector


@given(selectors, label_sets)
def test_the_string_selects_what_the_selector_selects(selector: LabelSelector, labels: dict[str, str]) -> None:
    assert LabelSelector.parse(str(selector)).matches(labels) == selector.matches(labels)


@given(selectors, label_sets)
def test_the_spec_form_selects_what_the_selector_selects(selector: LabelSelector, labels: dict[str, str]) -> None:
    comparable = LabelSelector(
        tuple(
            requirement
            for requirement in selector.requirements
            if requirement.operator not in (Operator.GREATER_THAN, Operator.LESS_THAN)
        )
    )

    again = LabelSelector.from_spec(comparable.to_spec())

    assert again.matches(labels) == comparable.matches(labels)


@given(st.lists(requirements, max_size=4), label_sets)
def test_all_requirements_must_hold(some: list[LabelRequirement], labels: dict[str, str]) -> None:
    assert LabelSelector(tuple(some)).matches(labels) == all(requirement.matches(labels) for requirement in some)


@pytest.mark.parametrize("text", ["a!=b", "a notin (b)", "!a"])
def test_a_negative_requirement_holds_when_the_key_is_absent(text: str) -> None:
    assert LabelSelector.parse(text).matches({})
    assert LabelSelector.parse(text).matches(None)
    assert not LabelSelector.parse(text).matches({"a": "b"})


@pytest.mark.parametrize("text", ["a=", "a in ()", "a", "a>3", "a<3"])
def test_a_positive_requirement_fails_when_the_key_is_absent(text: str) -> None:
    assert not LabelSelector.parse(text).matches({})


@pytest.mark.parametrize(
    ("value", "greater", "less"),
    [("4", True, False), ("3", False, False), ("2", False, True), ("004", True, False), ("x", False, False),
     ("", False, False), ("9223372036854775807", True, False),
     ("9223372036854775808", False, False), ("1_0", False, False)],
)  # fmt: skip
def test_order_is_that_of_64_bit_integers(value: str, greater: bool, less: bool) -> None:
    assert LabelSelector.parse("x>3").matches({"x": value}) is greater
    assert LabelSelector.parse("x<3").matches({"x": value}) is less


def test_labels_select_the_objects_with_all_of_them() -> None:
    selector = LabelSelector.of({"tier": "front", "app": "web"})

    assert str(selector) == "app=web,tier=front"
    assert selector.matches({"app": "web", "tier": "front", "more": "yes"})
    assert not selector.matches({"app": "web"})


def test_an_empty_spec_selects_everything_and_an_absent_one_nothing() -> None:
    assert LabelSelector.from_spec({}) == LabelSelector.everything()
    assert LabelSelector.from_spec({}).matches({})
    assert LabelSelector.from_spec(None) == LabelSelector.nothing()
    assert not LabelSelector.from_spec(None).matches({})


def test_the_selector_of_nothing_cannot_be_converted() -> None:
    with pytest.raises(ValueError, match="an empty one would select everything"):
        str(LabelSelector.nothing())
    with pytest.raises(ValueError, match="leave out the field"):
        LabelSelector.nothing().to_spec()


STRUCTURE: dict[str, Any] = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "canary", "operator": "DoesNotExist"},
        {"key": "ready", "operator": "Exists"},
        {"key": "tier", "operator": "In", "values": ["back", "front"]},
        {"key": "zone", "operator": "NotIn", "values": ["b"]},
    ],
}


def test_the_spec_form_and_the_string_form_are_converted_into_each_other() -> None:
    text = "app=web,!canary,ready,tier in (back,front),zone notin (b)"

    assert str(LabelSelector.from_spec(STRUCTURE)) == text
    assert LabelSelector.parse(text).to_spec() == STRUCTURE


def test_two_values_for_one_key_survive_in_the_spec_form() -> None:
    structure = LabelSelector.parse("a=1,a=2").to_spec()

    assert structure == {
        "matchLabels": {"a": "1"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}],
    }


@dataclass
class Expression:
    key: str
    operator: str
    values: list[str] | None = None


@dataclass
class Model:
    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] = field(default_factory=list)


def test_a_model_is_a_spec_too() -> None:
    model = Model({"app": "web"}, [Expression("tier", "In", ["front"]), Expression("x", "Exists")])

    assert str(LabelSelector.from_spec(model)) == "app=web,tier in (front),x"
    assert LabelSelector.from_spec(Model()) == LabelSelector.everything()


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1"]}, '"Gt" is not a valid label selector operator'),
        ({"key": "a", "operator": "In"}, "values set can't be empty"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "values set must be empty"),
        ({"operator": "Exists"}, "name part must be non-empty"),
    ],
)
def test_a_bad_expression_is_refused(expression: dict[str, Any], answer: str) -> None:
    with pytest.raises(ValueError, match=answer):
        LabelSelector.from_spec({"matchExpressions": [expression]})


def test_order_has_no_spec_form() -> None:
    with pytest.raises(ValueError, match="'a>3' has no spec form"):
        LabelSelector.parse("a>3").to_spec()
