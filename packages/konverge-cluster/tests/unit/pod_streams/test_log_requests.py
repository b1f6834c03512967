"""Which run of a container a log request is for, and the kubelet's texts when there is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.nodes.container_states import ContainerState
from konverge_cluster.pod_streams.log_requests import log_run

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NEW = ContainerState(name="c", image="i")
FIRST = NEW.start(NOW)
CRASHED = FIRST.terminate(1, NOW)
BACK_OFF = CRASHED.wait("CrashLoopBackOff")
SECOND = BACK_OFF.start(NOW)
CRASHED_AGAIN = SECOND.terminate(1, NOW)
BACK_OFF_AGAIN = CRASHED_AGAIN.wait("CrashLoopBackOff")


@pytest.mark.parametrize(
    ("state", "run", "previous"),
    [
        (FIRST, 0, None),
        (CRASHED, 0, None),
        (BACK_OFF, 0, 0),
        (SECOND, 1, 0),
        (CRASHED_AGAIN, 1, 0),
        (BACK_OFF_AGAIN, 1, 1),
    ],
)
def test_the_run_of_a_log(state: ContainerState, run: int, previous: int | None) -> None:
    assert log_run(state, "web", previous=False) == run
    if previous is not None:
        assert log_run(state, "web", previous=True) == previous
        return
    with pytest.raises(StatusError) as caught:
        log_run(state, "web", previous=True)
    assert caught.value.code == 400
    assert str(caught.value) == 'previous terminated container "c" in pod "web" not found'


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("ContainerCreating", "ContainerCreating"),
        ("PodInitializing", "PodInitializing"),
        ("ErrImagePull", "image can't be pulled"),
        ("ImagePullBackOff", "trying and failing to pull image"),
    ],
)
def test_a_container_that_never_ran_has_no_log(reason: str, text: str) -> None:
    with pytest.raises(StatusError) as caught:
        log_run(NEW.wait(reason), "web", previous=False)
    assert str(caught.value) == f'container "c" in pod "web" is waiting to start: {text}'
