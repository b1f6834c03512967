"""Phases: checks when they are declared, transitions that are not declared, and the generated test."""

from __future__ import annotations

import logging
from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest

from konverge import Key
from konverge.workflow import DerivedPhase, PhaseMetrics, Phases, check_phases
from shops import Phase, phases, shop, workflow


class Light(StrEnum):
    RED = "Red"
    GREEN = "Green"
    BLUE = "Blue"


def always_red(_obj: Any, _state: Any) -> DerivedPhase[Light]:
    return DerivedPhase(Light.RED, "Always")


def test_every_phase_is_declared() -> None:
    with pytest.raises(ValueError, match=r"transitions of Green, Blue are not declared: write \(\) for a final phase"):
        Phases(Light.RED, {Light.RED: ()}, always_red)


def test_every_phase_can_be_reached() -> None:
    with pytest.raises(ValueError, match="no transitions lead from Red to Blue"):
        Phases(Light.RED, {Light.RED: {Light.GREEN}, Light.GREEN: {Light.RED}, Light.BLUE: {Light.RED}}, always_red)


def test_every_phase_of_a_shop_is_reached_and_left() -> None:
    check_phases(workflow, [shop()])


def test_a_phase_that_the_function_never_returns_is_named() -> None:
    def derive(obj: Any, state: Any) -> DerivedPhase[Phase]:
        found = phases.derive(obj, state)
        return replace(found, phase=Phase.RUNNING) if found.phase is Phase.DEGRADED else found

    with pytest.raises(AssertionError, match="never reached from Pending by declared transitions: Degraded"):
        check_phases(replace(workflow, phases=replace(phases, derive=derive)), [shop()])


def test_a_phase_without_a_declared_way_out_is_named() -> None:
    def derive(obj: Any, state: Any) -> DerivedPhase[Phase]:
        found = phases.derive(obj, state)
        return replace(found, phase=Phase.FAILED) if obj.status.phase is Phase.FAILED else found

    with pytest.raises(AssertionError, match="reached and never left by declared transitions: Failed"):
        check_phases(replace(workflow, phases=replace(phases, derive=derive)), [shop()])


def test_an_unexpected_transition_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    metrics = PhaseMetrics("shop")
    key = Key("default", "web")
    with caplog.at_level(logging.WARNING):
        metrics.record(key, phases, Phase.PENDING, Phase.RUNNING)
        assert not caplog.records
        metrics.record(key, phases, Phase.DELETING, Phase.RUNNING)

    assert [record.getMessage() for record in caplog.records] == ["unexpected phase transition"]
    assert metrics.unexpected.labels("Deleting", "Running")._value.get() == 1
    assert metrics.objects.labels("Running")._value.get() == 1
    metrics.forget(key)
    metrics.forget(key)
    assert metrics.objects.labels("Running")._value.get() == 0
