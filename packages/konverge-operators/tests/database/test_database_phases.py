"""The phases of a Database: every combination of facts has one, and every declared phase is reached and left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product

from databases import NAME, database
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import from_wire, now
from konverge_operators.database.api import Database, LastReady, Phase
from konverge_operators.database.engine import Member, ObservedMembers
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import REVISION
from konverge_operators.database.phases import derive_phase, phases
from konverge_operators.database.steps import Replace, SwitchOver, Wait, next_step

NOW = now()
HOUR = timedelta(hours=1)
ERRORS = ({"expansion_error": "x"}, {"recovery_error": "x"})


def pod(ordinal: int, *, ready: bool = True, revision: str = "new", since: timedelta = HOUR) -> Pod:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": (NOW - since).isoformat()}
    metadata = {"name": f"{NAME}-{ordinal}", "namespace": "default", "annotations": {REVISION: revision}}
    document = {"metadata": metadata, "spec": {"containers": []}, "status": {"conditions": [condition]}}
    return from_wire(Pod, {"apiVersion": "v1", "kind": "Pod", **document})


def claim(size: str) -> PersistentVolumeClaim:
    document = {"metadata": {"name": f"data-{NAME}-0"}, "spec": {}, "status": {"capacity": {"storage": size}}}
    return from_wire(PersistentVolumeClaim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **document})


def stateful_set(replicas: int, revision: str = "new") -> StatefulSet:
    template = {"metadata": {"annotations": {REVISION: revision}}, "spec": {"containers": []}}
    spec = {"replicas": replicas, "selector": {}, "serviceName": NAME, "template": template}
    status = {"observedGeneration": 1, "replicas": replicas}
    document = {"metadata": {"name": NAME, "generation": 1}, "spec": spec, "status": status}
    return from_wire(StatefulSet, {"apiVersion": "apps/v1", "kind": "StatefulSet", **document})


def observed(replicas: int, *, primary: bool = True, initialized: bool = True) -> ObservedMembers:
    members = tuple(Member(f"{NAME}-{one}", healthy=primary) for one in range(replicas))
    return ObservedMembers(initialized, members, f"{NAME}-0" if primary else "")


def objects() -> Iterator[Database]:
    for hibernate, replicas, ready, lost, old in product((False, True), (1, 2), (0, 1, 2), (None, HOUR), (False, True)):
        found = database(hibernate=hibernate, replicas=replicas)
        found.metadata.creation_timestamp = NOW - (HOUR if old else timedelta(0))
        found.status.last_ready = LastReady(replicas=ready, revision="new" if replicas == 1 else "old")
        found.status.primary_lost_at = NOW - lost if lost is not None else None
        yield found
    yield database(recovery={"fromBackup": "first"})
    terminating = database()
    terminating.metadata.deletion_timestamp = NOW
    yield terminating


def all_facts(found: Database) -> Iterator[Facts]:
    sets = (None, stateful_set(0), stateful_set(1), stateful_set(2))
    for live, primary, initialized, size in product(sets, (False, True), (False, True), ("1Gi", "500Mi")):
        replicas = (live.spec.replicas or 0) if live is not None else 0
        state = observed(replicas, primary=primary, initialized=initialized)
        pods = tuple(pod(one) for one in range(replicas))
        for texts in ({}, {"violation": "x"}, {"missing": ("x",)}, {"unreachable": "x"}, *ERRORS):
            yield Facts(
                database=found,
                now=NOW,
                revision="new",
                stateful_set=live,
                pods=pods,
                claims=(claim(size),),
                observed=state,
                **texts,
            )


def test_every_combination_of_facts_has_a_phase_and_every_phase_is_reached() -> None:
    reached = {derive_phase(one, facts).phase for one in objects() for facts in all_facts(one)}
    assert reached == set(Phase)


def test_every_phase_can_be_left_except_deleting() -> None:
    assert [phase for phase in Phase if not phases.transitions[phase]] == [Phase.DELETING]


def test_the_next_step_of_every_combination_keeps_the_primary() -> None:
    for one in objects():
        for facts in all_facts(one):
            step = next_step(facts)
            if isinstance(step, Replace) and len(facts.healthy) > 1:
                assert step.pod.name != facts.primary


def update(*revisions: str, primary: int = 0, ready: tuple[bool, ...] = (True, True, True)) -> Facts:
    pods = tuple(pod(one, revision=revision, ready=ready[one]) for one, revision in enumerate(revisions))
    members = tuple(Member(one.name, healthy=True) for one in pods)
    state = ObservedMembers(initialized=True, members=members, primary=f"{NAME}-{primary}")
    wanted = database(replicas=len(pods))
    return Facts(
        database=wanted, now=NOW, revision="new", stateful_set=stateful_set(len(pods)), pods=pods, observed=state
    )


def test_an_update_goes_from_the_last_replica_to_the_primary() -> None:
    first = next_step(update("old", "old", "old"))
    assert isinstance(first, Replace)
    assert first.pod.name == f"{NAME}-2"
    second = next_step(update("old", "old", "new"))
    assert isinstance(second, Replace)
    assert second.pod.name == f"{NAME}-1"
    assert next_step(update("old", "new", "new")) == SwitchOver(f"{NAME}-1", "the primary is updated last")
    last = next_step(update("old", "new", "new", primary=1))
    assert isinstance(last, Replace)
    assert last.pod.name == f"{NAME}-0"
    assert next_step(update("new", "new", "new", primary=1)) is None


def test_an_update_waits_for_a_new_pod_and_replaces_a_broken_old_one_first() -> None:
    waits = next_step(update("old", "old", "new", ready=(True, True, False)))
    assert waits == Wait(f"{NAME}-2 not ready")
    broken = next_step(update("old", "old", "new", ready=(True, False, False)))
    assert isinstance(broken, Replace)
    assert broken.pod.name == f"{NAME}-1"


def test_an_update_does_not_replace_a_pod_that_is_not_ready_for_a_moment() -> None:
    """A primary loses its readiness while it hands over: it would be killed, and the lock would have to run out."""
    facts = update("old", "new", "new")
    handing_over = replace(
        facts, pods=(pod(0, ready=False, revision="old", since=timedelta(seconds=9)), *facts.pods[1:])
    )
    assert next_step(handing_over) == Wait("no member accepts writes")
    broken = next_step(replace(facts, pods=(pod(0, ready=False, revision="old"), *facts.pods[1:])))
    assert isinstance(broken, Replace)


def with_synchronous(mode: str, *chosen: int, replicas: int = 3) -> Facts:
    """Return the facts of members that all serve; commits wait for the chosen ones."""
    members = tuple(Member(f"{NAME}-{one}", healthy=True, synchronous=one in chosen) for one in range(replicas))
    wanted = database(replicas=replicas, synchronous=mode)
    wanted.status.last_ready = LastReady(replicas=replicas, revision="new")
    return Facts(
        database=wanted,
        now=NOW,
        revision="new",
        stateful_set=stateful_set(replicas),
        pods=tuple(pod(one) for one in range(replicas)),
        observed=ObservedMembers(initialized=True, members=members, primary=f"{NAME}-0"),
    )


def test_a_primary_whose_commits_wait_for_no_replica_yet_is_not_ready_and_nothing_is_stopped() -> None:
    for mode in ("on", "strict"):
        facts = with_synchronous(mode)
        assert derive_phase(facts.database, facts).reason == "NoSynchronousReplica"
        assert next_step(replace(facts, revision="newer", stateful_set=stateful_set(3, "newer"))) == Wait(
            "commits wait for no replica yet"
        )
        facts = with_synchronous(mode, 2)
        assert derive_phase(facts.database, facts).phase is Phase.READY
        assert next_step(facts) is None


def test_a_single_member_or_one_without_synchronous_replication_waits_for_no_replica() -> None:
    for facts in (with_synchronous("off"), with_synchronous("on", replicas=1)):
        assert derive_phase(facts.database, facts).phase is Phase.READY
        assert next_step(facts) is None
