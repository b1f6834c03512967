"""Revisions of a Deployment: annotations, names, history."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects.names import dns_subdomain_errors
from konverge_cluster.workloads.deployments.history import cleanup_candidates
from konverge_cluster.workloads.deployments.revisions import HISTORY, REVISION, highest_revision, revision_annotations
from konverge_cluster.workloads.deployments.rollout import find_replica_sets
from konverge_cluster.workloads.deployments.templates import (
    HASH,
    replica_set_name,
    same_template,
    template_hash,
    with_hash_label,
)
from workload_objects import deployment, replica_set

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_a_new_replica_set_gets_the_next_revision_and_the_annotations_of_its_deployment() -> None:
    noted = {"team": "shop", APPLIED: "{}", REVISION: "7"}
    assert revision_annotations({}, noted, 8) == {"team": "shop", REVISION: "8"}


def test_a_rollback_gives_a_new_revision_and_records_the_old_ones() -> None:
    once = revision_annotations({REVISION: "1", "x": "y"}, {}, 3)
    assert once == {REVISION: "3", HISTORY: "1", "x": "y"}
    assert revision_annotations(once, {}, 5)[HISTORY] == "1,3"


def test_a_revision_never_decreases() -> None:
    assert revision_annotations({REVISION: "9"}, {}, 4) == {REVISION: "9"}
    assert revision_annotations({REVISION: "what"}, {}, 4) == {REVISION: "what"}


def test_the_history_drops_its_oldest_revisions() -> None:
    long = ",".join(str(number) for number in range(1000, 1399))
    history = revision_annotations({REVISION: "1999", HISTORY: long}, {}, 2000)[HISTORY]
    assert len(history) <= 2000
    assert history.startswith("1000,")
    assert history.endswith(",1398,1999")
    longer = revision_annotations({REVISION: "2000", HISTORY: history}, {}, 2001)[HISTORY]
    assert longer.startswith("1001,")
    assert longer.endswith(",1999,2000")


def test_the_highest_revision_skips_invalid_ones() -> None:
    sets = [replica_set(name, annotations={REVISION: text}) for name, text in {"a": "3", "b": "x", "c": "12"}.items()]
    assert highest_revision(sets) == 12
    assert highest_revision([]) == 0


def test_templates_are_equal_whatever_their_hash_label() -> None:
    template = deployment().spec.template
    assert same_template(template, with_hash_label(template, "abc"))
    other = copy.deepcopy(template)
    other.spec.containers[0].image = "i:2"
    assert not same_template(template, other)


def test_the_hash_depends_on_the_template_and_the_collisions() -> None:
    template = deployment().spec.template
    hashes = {template_hash(template, collisions) for collisions in (None, 0, 1, 2)}
    assert len(hashes) == 4
    assert template_hash(template, 1) == template_hash(copy.deepcopy(template), 1)
    assert with_hash_label(template, "h").metadata.labels == {"app": "web", HASH: "h"}  # type: ignore[union-attr]


@settings(max_examples=50)
@given(st.integers(1, 253), st.none() | st.integers(0, 1000))
def test_every_deployment_name_gives_a_valid_replica_set_name(length: int, collisions: int | None) -> None:
    hash_ = template_hash(deployment().spec.template, collisions)
    name = replica_set_name("d" * length, hash_)
    assert dns_subdomain_errors(name) == []
    assert name.endswith(f"-{hash_}")


def test_of_several_with_the_current_template_the_oldest_is_the_new_one() -> None:
    younger = replica_set("a", creationTimestamp="2026-01-01T02:00:00Z")
    older = replica_set("b", creationTimestamp="2026-01-01T01:00:00Z")
    other = replica_set("c", template={"spec": {"containers": [{"name": "c", "image": "i:2"}]}})
    sets = find_replica_sets(deployment(), [younger, older, other])
    assert sets.new is older
    assert {one.name for one in sets.old} == {"a", "c"}
    assert sets.all[-1] is older


def test_empty_replica_sets_beyond_the_history_limit_are_deleted_by_revision() -> None:
    def old(name: str, revision: int, size: int = 0, **more: Any) -> Any:
        return replica_set(name, size, annotations={REVISION: str(revision)}, **more)

    sets = [old("d", 4), old("b", 2, 1), old("a", 1), old("c", 3, status={"observedGeneration": 0}), old("e", 5)]
    assert [one.name for one in cleanup_candidates(deployment(revisionHistoryLimit=1), sets)] == ["a", "d"]
    assert cleanup_candidates(deployment(revisionHistoryLimit=5), sets) == []
    assert cleanup_candidates(deployment(revisionHistoryLimit=2**31 - 1), sets) == []
