"""Claims on objects, and the selectors that match orphans."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects import Key, LabelSelector
from konverge_cluster.workloads.pods.claims import adopt_patch, claim, release_patch
from konverge_cluster.workloads.pods.selector_index import SelectorIndex
from workload_objects import NOW, owned_by, pod, replica_set

WEB = LabelSelector.of({"app": "web"})
OTHER = replica_set("other")
OWNER = replica_set("mine")
OBJECTS = {
    "kept": pod("kept", ownerReferences=owned_by(OWNER)),
    "released": pod("released", labels={"app": "no"}, ownerReferences=owned_by(OWNER)),
    "another's": pod("another", ownerReferences=owned_by(OTHER)),
    "adopted": pod("adopted"),
    "adopted beside an owner": pod("beside", ownerReferences=owned_by(OTHER, controller=False)),
    "not selected": pod("stranger", labels={"app": "no"}),
    "nobody's, leaving": pod("leaving", deleting=NOW),
}


def test_an_owner_owns_adopts_and_releases() -> None:
    claims = claim(OWNER, WEB, OBJECTS.values())
    assert [one.name for one in claims.owned] == ["kept"]
    assert [one.name for one in claims.to_adopt] == ["adopted", "beside"]
    assert [one.name for one in claims.to_release] == ["released"]


def test_an_owner_being_deleted_neither_adopts_nor_releases() -> None:
    leaving = replica_set("mine", deletionTimestamp="2026-01-01T00:00:00Z")
    claims = claim(leaving, WEB, OBJECTS.values())
    assert [one.name for one in claims.owned] == ["kept"]
    assert claims.to_adopt == claims.to_release == []


def test_patches_have_the_uid_of_the_object() -> None:
    taken = adopt_patch(OWNER, OBJECTS["adopted"], finalizers=("x/y",))["metadata"]
    assert taken["uid"] == "uid-adopted"
    assert taken["finalizers"] == ["x/y"]
    assert taken["ownerReferences"] == owned_by(OWNER)
    freed = release_patch(OWNER, OBJECTS["kept"], finalizers=("x/y",))["metadata"]
    assert freed == {
        "uid": "uid-kept",
        "ownerReferences": [{"$patch": "delete", "uid": "uid-mine"}],
        "$deleteFromPrimitiveList/finalizers": ["x/y"],
    }


SELECTORS = st.sampled_from(["a=1", "a=1,b=2", "a in (1,2)", "a", "!a", "b!=2", "", "a in (1),b in (2)", "b=2"])
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 3), st.none() | SELECTORS), max_size=12), LABELS)
def test_exactly_the_owners_whose_selector_matches_are_found(
    steps: list[tuple[str, int, str | None]], labels: dict[str, str]
) -> None:
    selectors = SelectorIndex()
    model: dict[Key, LabelSelector] = {}
    for namespace, number, text in steps:
        key = Key(namespace, str(number))
        if text is None:
            selectors.drop(key)
            model.pop(key, None)
        else:
            model[key] = LabelSelector.parse(text)
            selectors.put(key, model[key])
    for namespace in "xy":
        expected = sorted(key for key, one in model.items() if key.namespace == namespace and one.matches(labels))
        assert selectors.matching(namespace, labels) == expected
