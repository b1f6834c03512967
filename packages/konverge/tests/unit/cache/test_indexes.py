"""Indexes: what they find, how they are added, and objects without a value."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry
from konverge.cache.indexes import Index, IndexFunc, LabelIndex, by_function, by_path
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store
from konverge.objects import LabelSelector, Unstructured

intake = Decoder(WIDGET)


def entry(name: str, spec: object = None, **metadata: object) -> Entry:
    return intake.decode(widget(name, 1, spec=spec, **metadata))  # type: ignore[arg-type]


def values_of(values: IndexFunc, spec: object) -> list[object]:
    return list(values(entry("a", spec)))


@pytest.mark.parametrize(
    ("path", "spec", "values"),
    [
        (".spec.node", {"node": "n1"}, ["n1"]),
        (".spec.node", {"node": ["n1", "n2"]}, ["n1", "n2"]),
        (".spec.node", {}, []),
        (".spec.node", {"node": None}, []),
        (".spec.node", {"node": {"x": 1}}, []),
        (".spec.node", {"node": [{"x": 1}, "n"]}, ["n"]),
        (".spec.a.b", {"a": {"b": 7}}, [7]),
        (".spec.a.b", {"a": None}, []),
        (".spec.nodeName", {"nodeName": True}, [True]),
        (".status.phase", {}, []),
        (".metadata.name", {}, ["a"]),
    ],
)
def test_a_wire_path_indexes_the_field_or_its_elements(path: str, spec: object, values: list[object]) -> None:
    assert values_of(by_path(path), spec) == values


@pytest.mark.parametrize("path", ["", ".", "spec.node", ".spec..node", ".spec."])
def test_an_invalid_path_is_rejected_with_an_example(path: str) -> None:
    with pytest.raises(ValueError, match=r" is not a wire path: write one such as '\.spec\.nodeName'$"):
        by_path(path)


def sizes(obj: Unstructured) -> Iterable[int]:
    return [obj["spec"]["size"]]


def test_an_index_function_receives_the_decoded_object() -> None:
    assert values_of(by_function(Unstructured, sizes), {"size": 3}) == [3]


def test_an_object_on_which_the_index_function_fails_is_not_found_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = Index("size", by_function(Unstructured, sizes))
    with caplog.at_level(logging.ERROR):
        for name in ("a", "b"):
            index.update(None, entry(name, {}))
        index.update(None, entry("c", {"size": 3}))
    assert index.find(3) == (at("c"),)
    assert len(caplog.records) == 1
    assert caplog.records[0].index == "size"  # type: ignore[attr-defined]


def test_an_index_drops_values_without_objects() -> None:
    index = Index("node", by_path(".spec.node"))
    states = [entry("a", {"node": "n1"}), entry("b", {"node": "n1"}), entry("c", {"node": "n1"})]
    for state in states:
        index.update(None, state)
    assert (index.count("n1"), len(index.find("n1"))) == (3, 3)
    for state in states:
        index.update(state, None)
    assert index.values() == ()
    assert (index.count("n1"), index.find("n1")) == (0, ())


def test_an_index_can_be_added_before_or_after_the_objects() -> None:
    early = Store(WIDGET, options=CacheOptions(indexes=(("node", by_path(".spec.node")),)))
    late = Store(WIDGET)
    for store in (early, late):
        store.put(widget("a", 1, spec={"node": "n1"}))
        store.record_write(widget("b", 2, spec={"node": "n1"}))
    late.add_index("node", by_path(".spec.node"))
    for store in (early, late):
        assert sorted(found.key.name for found in store.find("node", "n1")) == ["a", "b"]


async def test_an_index_finds_the_first_list_and_earlier_own_writes() -> None:
    store = Store(WIDGET, options=CacheOptions(indexes=(("node", by_path(".spec.node")),)))
    store.record_write(widget("own", 20, spec={"node": "n1"}))
    store.record_write(widget("both", 21, spec={"node": "n2"}))
    store.begin()
    store.put(widget("void", 1, spec={"node": "n1"}))
    store.begin()
    store.put(widget("a", 1, spec={"node": "n0"}))
    store.put(widget("a", 2, spec={"node": "n1"}))
    store.put(widget("gone", 3, spec={"node": "n1"}))
    store.remove(widget("gone", 4, spec={"node": "n1"}))
    store.put(widget("both", 5, spec={"node": "n1"}))
    store.add_index("name", by_path(".metadata.name"))
    store.record_write(widget("late", 22, spec={"node": "n1"}))
    assert sorted(found.key.name for found in store.find("node", "n1")) == ["late", "own"], "nothing of the list"
    await store.swap("10")

    assert sorted(found.key.name for found in store.find("node", "n1")) == ["a", "late", "own"]
    assert [found.key.name for found in store.find("node", "n2")] == ["both"]
    assert store.find("node", "n0") == []
    assert [len(store.find("name", name)) for name in ("a", "gone", "both", "late", "void")] == [1, 0, 1, 1, 0]


def test_an_equal_index_can_be_added_twice_but_not_a_different_one() -> None:
    store = Store(WIDGET)
    store.add_index("node", by_path(".spec.node"))
    store.add_index("node", by_path(".spec.node"))
    for taken, values in [("node", by_path(".spec.other")), ("owners", by_path(".x")), ("labels", by_path(".x"))]:
        with pytest.raises(ValueError, match=r" already has a different index '[a-z]+': choose another name$"):
            store.add_index(taken, values)


NO_INDEX = (
    r"^([A-Za-z]+) has no index 'nod': declare it with \.index\(\1, 'nod', '\.spec\.field'\) of the controller, or with"
    r" add_index of the lister \(known indexes: node\)$"
)


def test_the_error_for_an_unknown_index_lists_the_known_ones() -> None:
    store = Store(WIDGET)
    store.add_index("node", by_path(".spec.node"))
    with pytest.raises(ValueError, match=NO_INDEX):
        store.find("nod", "x")


def test_an_index_lookup_can_be_limited_to_a_namespace() -> None:
    store = Store(WIDGET)
    store.add_index("node", by_path(".spec.node"))
    store.put(widget("a", 1, spec={"node": "n1"}))
    store.put(widget("a", 2, spec={"node": "n1"}, namespace="bank"))
    assert [found.key.namespace for found in store.find("node", "n1", namespace="bank")] == ["bank"]


def test_a_label_selector_uses_the_label_index() -> None:
    index = LabelIndex()
    for number in range(100):
        index.update(None, entry(f"a-{number}", labels={"app": "web", "shard": str(number % 10)}))
    narrowed = index.candidates(LabelSelector.parse("app=web,shard in (1,2)"))
    assert narrowed is not None
    assert len(narrowed) == 20
    assert index.candidates(LabelSelector.parse("shard!=1,app")) is None


labels = st.dictionaries(st.sampled_from(["app", "tier", "x"]), st.sampled_from(["a", "b", ""]), max_size=3)
selectors = st.sampled_from(
    ["app=a", "app==b", "app!=a", "app", "!app", "app in (a,b)", "app notin (a)", "app=a,tier=b", "tier in (a),!x", ""]
)


@settings(max_examples=150, deadline=None)
@given(states=st.lists(st.tuples(st.sampled_from("abcd"), st.none() | labels), max_size=12), selector=selectors)
def test_a_list_by_labels_equals_a_full_scan(states: list[tuple[str, dict[str, str] | None]], selector: str) -> None:
    store = Store(WIDGET)
    store.list(labels=LabelSelector.parse("app=a"))  # so that the index exists from the start
    for version, (name, wanted) in enumerate(states, 1):
        if wanted is None:
            store.remove(widget(name, version))
        else:
            store.put(widget(name, version, labels=wanted))
    chosen = LabelSelector.parse(selector)
    found = {one.key for one in store.list(labels=chosen)}
    assert found == {one.key for one in store.list() if chosen.matches(one.label_map())}
