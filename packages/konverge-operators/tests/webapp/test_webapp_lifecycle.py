"""The state machine of a WebApp, as a plain function of facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import Key
from konverge_operators.webapp.api import Phase
from konverge_operators.webapp.lifecycle import DECLARED, Facts, Lifecycle, standing_of
from webapps import undeclared

NEW = Facts(image="a:1", observed=True, wanted=3)
GOOD = replace(
    NEW, replicas=3, updated=3, available=3, rolled_out=True, good_image="a:1", good_replicas=3
)  # all is as it was when it was ready


@pytest.mark.parametrize(
    ("facts", "phase", "reason"),
    [
        (Facts(deleting=True, trouble=("X", "x")), Phase.DELETING, "Deleting"),
        (replace(GOOD, trouble=("RolledBack", "x")), Phase.DEGRADED, "RolledBack"),
        (replace(NEW, observed=False), Phase.RECONCILING, "PartsApplied"),
        (NEW, Phase.WAITING, "WaitingForPods"),
        (replace(NEW, replicas=3, updated=3, available=2), Phase.WAITING, "WaitingForPods"),
        (replace(NEW, replicas=3, updated=3, available=3), Phase.READY, "AllReplicasAvailable"),
        (replace(NEW, wanted=0), Phase.READY, "AllReplicasAvailable"),
        (GOOD, Phase.READY, "AllReplicasAvailable"),
        (replace(GOOD, observed=False), Phase.RECONCILING, "PartsApplied"),
        (replace(GOOD, observed=False, wanted=5), Phase.SCALING, "Scaling"),
        (replace(GOOD, observed=False, image="a:2"), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, wanted=5, replicas=5, updated=5), Phase.SCALING, "Scaling"),
        (replace(GOOD, wanted=1), Phase.SCALING, "Scaling"),
        (replace(GOOD, image="a:2", updated=1, replicas=4), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, image="a:2", updated=3, available=2), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, updated=1, replicas=4, rolled_out=False), Phase.UPDATING, "RollingOut"),
        (replace(GOOD, available=1, rolled_out=False), Phase.WAITING, "WaitingForPods"),
        (replace(GOOD, available=2), Phase.DEGRADED, "PodsLost"),
        (replace(NEW, stuck="too late"), Phase.DEGRADED, "RolloutFailed"),
        (replace(NEW, refused="quota"), Phase.DEGRADED, "PodsRefused"),
        (replace(GOOD, observed=False, stuck="of the old one", image="a:2"), Phase.UPDATING, "RollingOut"),
    ],
)
def test_the_phase_follows_from_what_is_observed(facts: Facts, phase: Phase, reason: str) -> None:
    standing = standing_of(facts)
    assert (standing.phase, standing.reason) == (phase, reason)


counts = st.integers(0, 4)
facts = st.builds(
    Facts,
    deleting=st.booleans(),
    trouble=st.none() | st.just(("Reason", "words")),
    image=st.sampled_from(["a:1", "a:2"]),
    observed=st.booleans(),
    wanted=counts,
    replicas=counts,
    updated=counts,
    available=counts,
    rolled_out=st.booleans(),
    stuck=st.sampled_from(["", "stuck"]),
    refused=st.sampled_from(["", "refused"]),
    good_image=st.sampled_from(["", "a:1"]),
    good_replicas=counts,
)


@given(facts)
def test_whatever_is_observed_there_is_a_phase_and_a_reason_that_kubernetes_takes(observed: Facts) -> None:
    standing = standing_of(observed)
    assert standing.phase is not Phase.CREATED
    assert standing.reason.isalpha()
    assert standing.message
    assert (standing.phase is Phase.DELETING) == observed.deleting
    if standing.phase is Phase.READY:
        assert observed.available == observed.wanted == observed.updated == observed.replicas


@given(facts)
def test_the_same_facts_give_the_same_phase_whatever_was_before(observed: Facts) -> None:
    assert standing_of(observed) == standing_of(replace(observed))


def test_every_phase_is_declared_reaches_the_end_and_can_be_reached() -> None:
    assert DECLARED.keys() == set(Phase)
    assert all(Phase.DELETING in after for before, after in DECLARED.items() if before is not Phase.DELETING)
    reached = {Phase.CREATED}.union(*DECLARED.values())
    assert reached == set(Phase)
    assert not any(before in after for before, after in DECLARED.items() if before is not Phase.READY)


def test_an_undeclared_transition_is_counted_and_logged_and_never_raised(caplog: pytest.LogCaptureFixture) -> None:
    lifecycle = Lifecycle()
    lifecycle.stands(Key("shop", "web"), Phase.CREATED, Phase.RECONCILING)
    lifecycle.stands(Key("shop", "web"), Phase.RECONCILING, Phase.RECONCILING)
    assert undeclared(lifecycle) == {}
    lifecycle.stands(Key("shop", "web"), Phase.DELETING, Phase.READY)
    assert undeclared(lifecycle) == {"Deleting -> Ready": 1}
    assert "Undeclared transition" in caplog.text


def test_applications_are_counted_by_phase_until_they_are_gone() -> None:
    lifecycle = Lifecycle()
    for name in ("a", "b"):
        lifecycle.stands(Key("shop", name), Phase.CREATED, Phase.RECONCILING)
    lifecycle.stands(Key("shop", "a"), Phase.RECONCILING, Phase.READY)
    lifecycle.stands(Key("shop", "a"), Phase.READY, Phase.READY)
    lifecycle.forget(Key("shop", "b"))
    lifecycle.forget(Key("shop", "never"))
    found = {one.labels["phase"]: one.value for metric in lifecycle.applications.collect() for one in metric.samples}
    assert found == {"Reconciling": 0, "Ready": 1}
