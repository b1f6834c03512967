"""The state machine of a WebApp, a plain function of facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import Key
from konverge_operators.webapp.api import Phase
from konverge_operators.webapp.facts import Facts
from konverge_operators.webapp.lifecycle import ALLOWED_TRANSITIONS, Lifecycle, derive_status
from webapps import unexpected

NEW = Facts(image="a:1", observed=True, desired=3)
GOOD = replace(
    NEW, replicas=3, updated=3, available=3, new_replica_set_available=True, good_image="a:1", good_replicas=3
)  # unchanged since it was ready


@pytest.mark.parametrize(
    ("facts", "phase", "reason"),
    [
        (Facts(terminating=True, failure=("X", "x")), Phase.DELETING, "Deleting"),
        (replace(GOOD, failure=("RolledBack", "x")), Phase.DEGRADED, "RolledBack"),
        (replace(NEW, observed=False), Phase.RECONCILING, "ChildrenApplied"),
        (NEW, Phase.WAITING, "WaitingForPods"),
        (replace(NEW, replicas=3, updated=3, available=2), Phase.WAITING, "WaitingForPods"),
        (replace(NEW, replicas=3, updated=3, available=3), Phase.READY, "AllReplicasAvailable"),
        (replace(NEW, desired=0), Phase.READY, "AllReplicasAvailable"),
        (GOOD, Phase.READY, "AllReplicasAvailable"),
        (replace(GOOD, observed=False), Phase.RECONCILING, "ChildrenApplied"),
        (replace(GOOD, observed=False, desired=5), Phase.SCALING, "Scaling"),
        (replace(GOOD, observed=False, image="a:2"), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, desired=5, replicas=5, updated=5), Phase.SCALING, "Scaling"),
        (replace(GOOD, desired=1), Phase.SCALING, "Scaling"),
        (replace(GOOD, image="a:2", updated=1, replicas=4), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, image="a:2", updated=3, available=2), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, updated=1, replicas=4, new_replica_set_available=False), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, available=1, new_replica_set_available=False), Phase.WAITING, "WaitingForPods"),
        (replace(GOOD, available=2), Phase.DEGRADED, "PodsLost"),
        (replace(NEW, progress_failure="too late"), Phase.DEGRADED, "RolloutFailed"),
        (replace(NEW, replica_failure="quota"), Phase.DEGRADED, "PodsRefused"),
        (replace(GOOD, observed=False, progress_failure="of the old one", image="a:2"), Phase.UPDATING, "RollingOut"),
    ],
)
def test_the_phase_follows_from_what_is_observed(facts: Facts, phase: Phase, reason: str) -> None:
    derived = derive_status(facts)
    assert (derived.phase, derived.reason) == (phase, reason)


counts = st.integers(0, 4)
facts = st.builds(
    Facts,
    terminating=st.booleans(),
    failure=st.none() | st.just(("Reason", "words")),
    image=st.sampled_from(["a:1", "a:2"]),
    observed=st.booleans(),
    desired=counts,
    replicas=counts,
    updated=counts,
    available=counts,
    new_replica_set_available=st.booleans(),
    progress_failure=st.sampled_from(["", "progress_failure"]),
    replica_failure=st.sampled_from(["", "replica_failure"]),
    good_image=st.sampled_from(["", "a:1"]),
    good_replicas=counts,
)


@given(facts)
def test_all_facts_have_a_phase_and_a_reason_that_kubernetes_accepts(observed: Facts) -> None:
    derived = derive_status(observed)
    assert derived.phase is not Phase.CREATED
    assert derived.reason.isalpha()
    assert derived.message
    assert (derived.phase is Phase.DELETING) == observed.terminating
    if derived.phase is Phase.READY:
        assert observed.available == observed.desired == observed.updated == observed.replicas


@given(facts)
def test_the_same_facts_give_the_same_phase_whatever_the_phase_before(observed: Facts) -> None:
    assert derive_status(observed) == derive_status(replace(observed))


def test_every_phase_has_declared_transitions_can_be_reached_and_leads_to_deletion() -> None:
    assert ALLOWED_TRANSITIONS.keys() == set(Phase)
    assert all(Phase.DELETING in after for before, after in ALLOWED_TRANSITIONS.items() if before is not Phase.DELETING)
    reached = {Phase.CREATED}.union(*ALLOWED_TRANSITIONS.values())
    assert reached == set(Phase)
    assert not any(before in after for before, after in ALLOWED_TRANSITIONS.items() if before is not Phase.READY)


def test_an_unexpected_transition_is_counted_and_logged_and_never_raised(caplog: pytest.LogCaptureFixture) -> None:
    lifecycle = Lifecycle()
    lifecycle.record_phase(Key("shop", "web"), Phase.CREATED, Phase.RECONCILING)
    lifecycle.record_phase(Key("shop", "web"), Phase.RECONCILING, Phase.RECONCILING)
    assert unexpected(lifecycle) == {}
    lifecycle.record_phase(Key("shop", "web"), Phase.DELETING, Phase.READY)
    assert unexpected(lifecycle) == {"Deleting -> Ready": 1}
    assert "unexpected phase transition" in caplog.text


def test_applications_are_counted_by_phase_until_they_are_gone() -> None:
    lifecycle = Lifecycle()
    for name in ("a", "b"):
        lifecycle.record_phase(Key("shop", name), Phase.CREATED, Phase.RECONCILING)
    lifecycle.record_phase(Key("shop", "a"), Phase.RECONCILING, Phase.READY)
    lifecycle.record_phase(Key("shop", "a"), Phase.READY, Phase.READY)
    lifecycle.forget(Key("shop", "b"))
    lifecycle.forget(Key("shop", "never"))
    samples = [sample for metric in lifecycle.applications.collect() for sample in metric.samples]
    assert {sample.labels["phase"]: sample.value for sample in samples} == {"Reconciling": 0, "Ready": 1}
