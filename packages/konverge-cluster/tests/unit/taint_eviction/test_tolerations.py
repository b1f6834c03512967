"""How long pods tolerate taints."""

from __future__ import annotations

import math

import pytest

from konverge.k8s.core.v1 import Taint, Toleration
from konverge_cluster.taint_eviction.tolerations import execute_taints, toleration_seconds

WORK, MORE = Taint(key="work", value="on", effect="NoExecute"), Taint(key="more", effect="NoExecute")


def tolerates(key: str, seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "taints", "seconds"),
    [
        ([], [WORK], None),
        ([tolerates("work")], [WORK], math.inf),
        ([tolerates("work", 60)], [WORK], 60.0),
        ([tolerates("work", -5)], [WORK], 0.0),
        ([tolerates("work", 60), tolerates("work", 5)], [WORK], 60.0),
        ([tolerates("work", 60), tolerates("more", 5)], [WORK, MORE], 5.0),
        ([tolerates("work", 60), tolerates("more")], [WORK, MORE], 60.0),
        ([tolerates("work", 60)], [WORK, MORE], None),
        ([Toleration(operator="Exists")], [WORK, MORE], math.inf),
        ([Toleration(key="work", value="off", effect="NoExecute")], [WORK], None),
        ([Toleration(key="work", value="on")], [WORK], math.inf),
    ],
)
def test_the_taint_that_is_tolerated_least_decides(
    tolerations: list[Toleration], taints: list[Taint], seconds: float | None
) -> None:
    assert toleration_seconds(tolerations, taints) == seconds


def test_only_no_execute_taints_evict() -> None:
    assert execute_taints([Taint(key="a", effect="NoSchedule"), WORK]) == [WORK]
