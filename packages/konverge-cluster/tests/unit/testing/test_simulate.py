"""The simulation kit finds planted mistakes, each within seconds, and passes the operator without them."""

from __future__ import annotations

import functools
import re

import pytest

from konverge_cluster.testing import SimulationFailure, simulate
from konverge_cluster.testing.simulation.simulate import REPLAY
from planted_mistakes import MISTAKES, Billing, SiteReconciler, edit_sites, operator_of, samples


def simulated(reconciler: type[SiteReconciler], seeds: int = 40) -> None:
    build = functools.partial(operator_of, reconciler)
    simulate(build, samples=samples(), external=Billing, seeds=seeds)(edit_sites)()


def test_the_correct_operator_passes() -> None:
    simulated(SiteReconciler, seeds=30)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_planted_mistake_is_found(mistake: type[SiteReconciler], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SimulationFailure, match=MISTAKES[mistake]) as failure:
        simulated(mistake)

    replay = re.search(rf"replay: {REPLAY}='(.*)' pytest .*::edit_sites$", str(failure.value))
    if replay is None:
        assert "replay" not in str(failure.value), "found without faults: nothing to replay"
        return
    monkeypatch.setenv(REPLAY, replay[1])
    with pytest.raises(SimulationFailure) as again:
        simulated(mistake)
    assert str(again.value) == str(failure.value).partition("\n")[0], "the line replays the same failure"
