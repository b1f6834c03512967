"""Indexes: messages as a whole, and what changes when an index is built, staged and swapped."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry
from konverge.cache.indexes import Index, Indexes, LabelIndex, by_function, by_path
from konverge.objects import LabelSelector, Unstructured


def entry(name: str, spec: Any = None, **metadata: Any) -> Entry:
    return Decoder(WIDGET).decode(widget(name, 1, spec=spec, **metadata))


def node(name: str, value: Any) -> Entry:
    return entry(name, {"node": value})


NODE = by_path(".spec.node")


def exactly(text: str) -> str:
    return f"^{re.escape(text)}$"


# Messages


@pytest.mark.parametrize("path", ["", ".", "spec.node", ".spec..node"])
def test_the_error_for_a_path_names_it(path: str) -> None:
    with pytest.raises(ValueError, match=exactly(f"{path!r} is not a wire path: write one such as '.spec.nodeName'")):
        by_path(path)


@pytest.mark.parametrize(("names", "known"), [((), "none"), (("node",), "node"), (("node", "a"), "a, node")])
def test_the_error_for_an_unknown_index_names_the_kind_and_the_known_ones(names: tuple[str, ...], known: str) -> None:
    indexes = Indexes("Widget", list)
    for name in names:
        indexes.add(name, NODE)
    text = (
        "Widget has no index 'nod': declare it with .index(Widget, 'nod', '.spec.field') of the controller, or with"
        f" add_index of the lister (known indexes: {known})"
    )
    with pytest.raises(ValueError, match=exactly(text)):
        indexes.get("nod")
    assert indexes.names() == names
    assert bool(indexes) is bool(names)


@pytest.mark.parametrize("taken", ["node", "owners", "labels"])
def test_the_error_for_a_taken_name_names_the_kind(taken: str) -> None:
    indexes = Indexes("Widget", list)
    indexes.add("node", NODE)
    with pytest.raises(
        ValueError, match=exactly(f"Widget already has a different index {taken!r}: choose another name")
    ):
        indexes.add(taken, by_path(".spec.other"))
    before = indexes.get("node")
    indexes.add("node", by_path(".spec.node"))
    assert indexes.get("node") is before


def test_a_failing_index_function_is_logged_once_by_index_and_object(caplog: pytest.LogCaptureFixture) -> None:
    index = Index("size", by_function(Unstructured, lambda obj: [obj["spec"]["size"]]))
    with caplog.at_level(logging.ERROR, "konverge.cache"):
        index.update(None, entry("a"))
        index.update(None, entry("b"))
    (record,) = caplog.records
    assert (record.message, vars(record)["index"], vars(record)["key"]) == ("index function failed", "size", "shop/a")
    assert record.exc_info is not None
    assert index.values() == ()


def test_functions_of_one_type_are_equal_if_they_are_the_same() -> None:
    assert by_function(Unstructured, sorted) == by_function(Unstructured, sorted)
    assert by_function(Unstructured, sorted) != by_function(dict, sorted)
    assert by_path(".a") != by_path(".b")


# One index


def test_an_index_has_each_value_of_each_object() -> None:
    index = Index("node", NODE)
    for state in (node("a", ["x", "y"]), node("b", "x"), node("c", "x"), node("d", 7), node("e", 1.5), node("f", None)):
        index.update(None, state)
    assert {value: set(index.find(value)) for value in index.values()} == {
        "x": {at("a"), at("b"), at("c")},
        "y": {at("a")},
        7: {at("d")},
        1.5: {at("e")},
    }
    assert [index.count(value) for value in ("x", "y", "z")] == [3, 1, 0]
    assert index.find("z") == ()


def test_true_and_one_are_different_values() -> None:
    index = Index("node", NODE)
    for name, value in (("a", True), ("b", 1), ("c", 1.0), ("d", False), ("e", 0)):
        index.update(None, node(name, value))
    assert set(index.find(True)) == {at("a")}
    assert index.find((True,)) == ()
    assert set(index.find(1)) == {at("b"), at("c")}
    assert set(index.find(False)) == {at("d")}
    assert (index.count(True), index.count(1), index.count(0)) == (1, 2, 1)
    assert sorted(map(repr, index.values())) == ["0", "1", "False", "True"]
    index.update(node("a", True), None)
    assert index.find(True) == ()


def test_a_change_of_an_object_moves_it_to_its_new_values() -> None:
    index = Index("node", NODE)
    first, second = node("a", ["x", "y"]), node("a", ["y", "z"])
    index.update(None, first)
    index.update(None, node("b", "y"))
    index.update(first, second)
    assert (index.find("x"), set(index.find("y")), index.find("z")) == ((), {at("a"), at("b")}, (at("a"),))
    index.update(second, None)
    assert index.values() == ("y",)
    assert index.find("y") == (at("b"),)
    index.update(node("b", "unknown"), None)
    assert index.find("y") == (at("b"),)


def test_a_copy_of_an_index_is_empty() -> None:
    index = Index("node", NODE)
    index.update(None, node("a", "x"))
    copy = index.new_empty()
    assert (copy.name, copy.index_func, copy.values()) == ("node", NODE, ())
    labels = LabelIndex()
    labels.update(None, entry("a", labels={"app": "web"}))
    assert (labels.new_empty().name, labels.new_empty().values()) == ("labels", ())
    assert labels.values() == (("app", "web"),)


def test_the_most_selective_requirement_of_a_selector_is_used() -> None:
    index = LabelIndex()
    for number in range(10):
        index.update(None, entry(f"a-{number}", labels={"app": "web", "shard": str(number % 5)}))

    def candidates(selector: str) -> int | None:
        found = index.candidates(LabelSelector.parse(selector))
        return None if found is None else len(found)

    assert candidates("app=web,shard=1") == candidates("shard=1,app=web") == candidates("shard==1") == 2
    assert candidates("shard in (1,2,3)") == 6
    assert candidates("shard in (1,2,3),app=web,app=db") == 0
    assert candidates("app=db") == 0
    assert candidates("shard!=1") is candidates("!shard") is candidates("shard notin (1)") is None


# The indexes of a store


class Collection:
    """A collection and its indexes."""

    def __init__(self, *entries: Entry) -> None:
        self.entries = {one.key: one for one in entries}
        self.indexes = Indexes("Widget", self.entries.values)


def test_an_index_that_is_added_has_the_existing_objects_and_follows_changes() -> None:
    it = Collection(node("a", "x"))
    it.indexes.add("node", NODE)
    it.indexes.add("name", by_path(".metadata.name"))
    it.indexes.update(None, node("b", "x"))
    assert set(it.indexes.get("node").find("x")) == {at("a"), at("b")}
    assert it.indexes.get("name").find("b") == (at("b"),)
    assert it.indexes.names() == ("node", "name")


def test_indexes_by_owner_and_by_label_are_built_once() -> None:
    owner = {"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "u"}
    it = Collection(entry("a", labels={"app": "web"}, ownerReferences=[owner]))
    assert not it.indexes
    owners, labels = it.indexes.owners(), it.indexes.labels()
    assert (owners.find("u"), labels.find(("app", "web"))) == ((at("a"),), (at("a"),))
    assert it.indexes.owners() is owners
    assert it.indexes.labels() is labels
    assert it.indexes.names() == ("owners", "labels")


def test_the_first_list_is_built_beside_what_readers_see() -> None:
    it = Collection()
    it.indexes.add("node", NODE)
    own = node("own", "x")
    it.indexes.update(None, own)
    it.indexes.begin(first=True)
    listed, both = node("a", "x"), node("both", "x")
    it.indexes.stage(None, node("a", "old"))
    it.indexes.stage(node("a", "old"), listed)
    it.indexes.stage(None, both)
    assert it.indexes.get("node").find("x") == (own.key,)
    known = {at("a"): listed, at("both"): both}
    it.indexes.swap({own.key: own, both.key: node("both", "y")}, known.get)
    assert set(it.indexes.get("node").find("x")) == {at("a"), at("own")}
    assert it.indexes.get("node").find("y") == (at("both"),)
    assert it.indexes.get("node").find("old") == ()
    it.indexes.stage(None, node("late", "x"))
    assert at("late") not in it.indexes.get("node").find("x"), "nothing is staged any more"


def test_an_index_that_is_added_during_the_first_list_is_built_at_its_end() -> None:
    it = Collection()
    it.indexes.begin(first=True)
    it.indexes.add("node", NODE)
    it.entries[at("a")] = node("a", "x")
    it.indexes.swap({}, it.entries.get)
    assert it.indexes.get("node").find("x") == (at("a"),)


def test_later_lists_stage_nothing() -> None:
    it = Collection(node("a", "x"))
    it.indexes.add("node", NODE)
    it.indexes.begin(first=False)
    it.indexes.stage(None, node("b", "x"))
    assert it.indexes.get("node").find("x") == (at("a"),)
