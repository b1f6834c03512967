"""The graph of components: errors when it is declared, order, and what is enabled."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.workflow import Component, Workflow
from konverge.workflow.graphs import closed_downwards, layers_of, reversed_graph
from shops import Shop, phases


async def nothing(_obj: Any, _ctx: Any) -> list[Any]:
    return []


def workflow_of(**needs: str) -> Workflow[Shop]:
    components = tuple(Component(name, nothing, kinds=(), needs=tuple(text.split())) for name, text in needs.items())
    return Workflow(kind=Shop, components=components, phases=phases)


def test_a_cycle_is_drawn() -> None:
    with pytest.raises(ValueError, match=r"in a cycle: b -> c -> d -> b"):
        workflow_of(a="", b="a c", c="d", d="b")


def test_a_component_cannot_need_itself() -> None:
    with pytest.raises(ValueError, match="component a needs itself: a -> a"):
        workflow_of(a="a")


def test_an_unknown_dependency_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"b -> x: there is no component x \(there are a, b\)"):
        workflow_of(a="", b="a x")


def test_a_name_is_used_once() -> None:
    twice = tuple(Component("a", nothing, kinds=()) for _ in range(2))
    with pytest.raises(ValueError, match="several components have the name a"):
        Workflow(kind=Shop, components=twice, phases=phases)


@pytest.mark.parametrize("name", ["", "Web", "a_b", "a" * 64, "ünï"])
def test_a_name_is_a_dns_label(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name for a component"):
        Component(name, nothing, kinds=())


def test_a_string_instead_of_a_tuple_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"needs of component a is a tuple: write needs=\(one,\)"):
        Component("a", nothing, kinds=(), needs="b")  # type: ignore[arg-type]


def test_layers_follow_the_longest_path() -> None:
    assert layers_of({"d": ["b", "c"], "a": [], "b": ["a"], "c": ["b"]}) == [["a"], ["b"], ["c"], ["d"]]


def test_what_needs_an_disabled_component_is_not_wanted_either() -> None:
    needs = {"a": [], "b": ["a"], "c": ["b"], "d": []}
    assert closed_downwards({"a", "c", "d"}, needs) == {"a", "d"}


def test_the_reversed_graph_names_the_dependents() -> None:
    assert reversed_graph({"a": [], "b": ["a"], "c": ["a", "b"]}) == {"a": ["b", "c"], "b": ["c"], "c": []}
