from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache import Event
from konverge.triggers import (
    Predicate,
    annotations_changed,
    anything,
    deletion_started,
    field_changed,
    generation_changed,
    has_labels,
    in_namespaces,
    labels_changed,
    resource_version_changed,
    spec_or_metadata_changed,
)
from trigger_objects import added, deleted, document, updated

CHANGES = [
    generation_changed,
    labels_changed,
    annotations_changed,
    resource_version_changed,
    field_changed(".spec.size"),
    spec_or_metadata_changed,
]
STATES = [has_labels("app=web"), has_labels("!app"), in_namespaces("shop"), in_namespaces("other")]
LEAVES = [anything, deletion_started, *CHANGES, *STATES]

labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "a"}])
objects = st.builds(
    lambda labels, annotations, generation, size, status, marks: document(
        metadata={"labels": labels, "annotations": annotations, "generation": generation} | marks,
        spec={"size": size},
        status={"phase": status},
    ),
    labels,
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"])),
    st.integers(1, 2),
    st.sampled_from([None, True, 1, 2, "1", [1], {"a": 1, "b": 2}]),
    st.sampled_from(["up", "down"]),
    st.sampled_from([{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"finalizers": ["example.com/x"]}]),
)
events = st.one_of(st.builds(updated, objects, objects), st.builds(added, objects), st.builds(deleted, objects))
predicates = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda p, q: p & q, inner, inner),
        st.builds(lambda p, q: p | q, inner, inner),
        st.builds(lambda p: ~p, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(events, predicates, predicates)
def test_predicates_are_an_algebra(event: Event, p: Predicate, q: Predicate) -> None:
    assert (p & q)(event) == (p(event) and q(event)) == (q & p)(event)
    assert (p | q)(event) == (p(event) or q(event)) == (q | p)(event)
    assert (~~p)(event) == p(event)
    assert (~(p & q))(event) == (~p | ~q)(event)
    assert (~(p | q))(event) == (~p & ~q)(event)
    assert (p | ~p)(event)


@settings(max_examples=100)
@given(events, st.sampled_from([anything, deletion_started, *CHANGES]))
def test_not_of_a_change_is_the_opposite(event: Event, p: Predicate) -> None:
    assert (~p)(event) is not p(event)


@settings(max_examples=100)
@given(predicates)
def test_the_repr_of_a_predicate_is_its_source(p: Predicate) -> None:
    names = {
        name: globals()[name]
        for name in (
            *("anything", "deletion_started", "field_changed", "generation_changed", "has_labels", "in_namespaces"),
            *("labels_changed", "annotations_changed", "resource_version_changed", "spec_or_metadata_changed"),
        )
    }
    assert repr(eval(repr(p), names)) == repr(p)


def test_the_repr_of_a_combination_has_parentheses() -> None:
    p = (generation_changed | labels_changed) & ~in_namespaces("kube-system", "x") & has_labels("app=web")
    assert (
        repr(p) == "(generation_changed | labels_changed) & ~in_namespaces('kube-system', 'x') & has_labels('app=web')"
    )
    assert repr(~p) == (
        "(~generation_changed & ~labels_changed) | in_namespaces('kube-system', 'x') | ~has_labels('app=web')"
    )


def test_a_function_becomes_a_predicate() -> None:
    def is_web(event: Event) -> bool:
        return event.key.name == "web"

    p = Predicate(is_web) & ~Predicate(lambda _: False, "never")
    assert repr(p) == "is_web & ~never"
    assert p(added(document("web")))
    assert not p(added(document("db")))


def outside_status(obj: dict[str, Any]) -> dict[str, Any]:
    remaining = {name: value for name, value in obj.items() if name != "status"}
    remaining["metadata"] = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return remaining


@settings(max_examples=100)
@given(objects, objects)
def test_each_change_predicate_equals_a_full_comparison(old: dict[str, Any], new: dict[str, Any]) -> None:
    event = updated(old, new)

    def same(one: Any, other: Any) -> bool:
        return repr(one) == repr(other)  # 1 == True in Python

    def differs(*path: str) -> bool:
        before, after = old, new
        for name in path:
            before, after = before.get(name, {}), after.get(name, {})
        return not same(dict(before) if isinstance(before, dict) else before, after)

    assert labels_changed(event) == (old["metadata"]["labels"] != new["metadata"]["labels"])
    assert annotations_changed(event) == (old["metadata"]["annotations"] != new["metadata"]["annotations"])
    assert generation_changed(event) == differs("metadata", "generation")
    assert field_changed(".spec.size")(event) == differs("spec", "size")
    assert field_changed(".status.phase")(event) == differs("status", "phase")
    assert resource_version_changed(event)
    before, after = outside_status(old), outside_status(new)
    metadata = before["metadata"] != after["metadata"]
    assert spec_or_metadata_changed(event) == (metadata or not same(before["spec"], after["spec"]))


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"ownerReferences": [{"uid": "1"}]}},
        {"metadata": {"generation": 2}},
        {"spec": {"a": 1}},
        {"data": {"a": "1"}},
    ],
)
def test_the_default_sees_what_is_outside_of_status(more: dict[str, Any]) -> None:
    assert spec_or_metadata_changed(updated(document(status={"a": 1}), document(status={"a": 1}, **more)))
    assert spec_or_metadata_changed(updated(document(status={"a": 1}, **more), document(status={"a": 1})))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"status": {"a": 1}}, {"status": {"a": 2}}),
        ({"spec": {}}, {"spec": {}, "status": {"a": 1}}),
        ({"spec": {"a": 1, "b": {"c": 1, "d": 2}}}, {"spec": {"b": {"d": 2, "c": 1}, "a": 1}}),
        ({"spec": {"a": 1}, "data": None}, {"spec": {"a": 1}}),
        (
            {"spec": {}, "metadata": {"labels": {"a": "1", "b": "2"}}},
            {"spec": {}, "metadata": {"labels": {"b": "2", "a": "1"}}},
        ),
        (
            {"spec": {}},
            {"spec": {}, "metadata": {"managedFields": [{"manager": "us", "time": "2026-01-01T00:00:00Z"}]}},
        ),
        ({"spec": {}}, {"spec": {}, "metadata": {"managedFields": [{"manager": "them"}]}}),
    ],
)
def test_the_default_does_not_see_status_bookkeeping_and_order(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert not spec_or_metadata_changed(updated(document(**old), document(**new)))
    assert not labels_changed(updated(document(**old), document(**new)))


def test_a_status_that_looks_like_a_field_does_not_hide_another() -> None:
    old = document(spec={"status": {"a": 1}}, status={"spec": 1})
    assert spec_or_metadata_changed(updated(old, document(spec={"status": {"a": 2}}, status={"spec": 1})))
    assert not spec_or_metadata_changed(updated(old, document(spec={"status": {"a": 1}}, status={"spec": 2})))


def test_with_metadata_only_the_generation_shows_other_changes() -> None:
    with_it = document(metadata={"generation": 3}, spec={"a": 1}, status={"a": 1})
    status = document(metadata={"generation": 3}, spec={"a": 1}, status={"a": 2})
    spec = document(metadata={"generation": 4}, spec={"a": 2}, status={"a": 1})
    labelled = document(metadata={"generation": 3, "labels": {"a": "b"}}, spec={"a": 1}, status={"a": 1})

    for p in (spec_or_metadata_changed, field_changed(".spec.a")):
        assert not p(updated(with_it, status, metadata_only=True))
        assert p(updated(with_it, spec, metadata_only=True))
    assert spec_or_metadata_changed(updated(with_it, labelled, metadata_only=True))
    assert field_changed(".status.a")(updated(with_it, status, metadata_only=True))
    assert not field_changed(".metadata.labels")(updated(with_it, status, metadata_only=True))


def test_with_metadata_only_a_kind_without_generation_always_passes() -> None:
    event = updated(document(data={"a": "1"}), document(data={"a": "2"}), metadata_only=True)
    assert spec_or_metadata_changed(event)
    assert field_changed(".data.a")(event)
    assert generation_changed(event)


def test_a_kind_without_generation_is_compared_by_content() -> None:
    old = document(data={"a": "1"})
    assert spec_or_metadata_changed(updated(old, document(data={"a": "2"})))
    assert not spec_or_metadata_changed(updated(old, document(data={"a": "1"})))
    assert generation_changed(updated(old, document(data={"a": "1"})))  # only the generation is compared


def test_an_added_or_deleted_object_has_changed_in_every_respect() -> None:
    for p in CHANGES:
        assert p(added(document()))
        assert p(deleted(document()))


def test_deletion_started_is_the_deletion_timestamp_or_the_deletion() -> None:
    marked = document(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert deletion_started(updated(document(), marked))
    assert deletion_started(deleted(document()))
    assert deletion_started(added(marked))
    assert not deletion_started(updated(marked, marked))
    assert not deletion_started(added(document()))


def test_an_update_that_changes_a_state_predicate_passes_both_sides() -> None:
    event = updated(document(metadata={"labels": {"skip": "yes"}}), document())
    assert has_labels("skip=yes")(event)
    assert (~has_labels("skip=yes"))(event)


def test_namespaces_and_cluster_scoped_objects() -> None:
    node = document(metadata={"namespace": ""})
    assert in_namespaces("shop", "other")(added(document()))
    assert not in_namespaces("other")(added(document()))
    assert not in_namespaces("shop")(added(node))
    assert (~in_namespaces("shop"))(added(node))


@pytest.mark.parametrize(
    ("path", "old", "new", "differ"),
    [
        (".spec", {"spec": {"a": 1}}, {"spec": {"a": 2}}, True),
        (".spec.a.b", {"spec": {"a": {"b": [1]}}}, {"spec": {"a": {"b": [1], "c": 1}}}, False),
        (".spec.a.b", {"spec": {"a": None}}, {"spec": {"a": {"b": None}}}, False),
        (".spec.a.b", {"spec": {"a": None}}, {"spec": {"a": {"b": 0}}}, True),
        (".spec.a.b", {}, {"spec": {"a": {"b": 0}}}, True),
        (".spec.a.b", {"spec": {"a": "text"}}, {"spec": {"a": {"b": 1}}}, True),
        ('.metadata.annotations["x.io/m"]', {"metadata": {"annotations": {"x.io/m": "1"}}}, {}, True),
        (".metadata.annotations['x.io/m']", {"metadata": {"annotations": {"x.io/n": "1"}}}, {}, False),
    ],
)
def test_a_field_at_a_path(path: str, old: dict[str, Any], new: dict[str, Any], differ: bool) -> None:
    assert field_changed(path)(updated(document(**old), document(**new))) is differ


@pytest.mark.parametrize("path", ["", "spec", ".", ".spec.", "..spec", ".spec x", ".spec[0]", '.spec["a'])
def test_an_invalid_path_is_rejected(path: str) -> None:
    with pytest.raises(ValueError, match="wire path"):
        field_changed(path)


def test_misuse_raises_with_what_to_write() -> None:
    def mine(event: Event) -> bool:
        return bool(event)

    with pytest.raises(TypeError, match=r"Predicate\(mine\)"):
        generation_changed & mine  # type: ignore[operator]
    with pytest.raises(TypeError, match="write & for"):
        bool(generation_changed)
    with pytest.raises(TypeError, match="function of an event"):
        Predicate("spec")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        in_namespaces()
    with pytest.raises(ValueError, match="found '=='"):
        has_labels("a==b==c")
