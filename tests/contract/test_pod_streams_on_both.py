"""Logs of pods and commands in them, as far as an API server without kubelets answers: both servers answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from authentication_clusters import (
    AuthenticationCluster,
    embedded_authentication_cluster,
    real_authentication_cluster,
)
from pod_stream_scenarios import SCENARIOS, Answers

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AuthenticationCluster, AuthenticationCluster]]:
    """The embedded cluster and a real one."""
    directory = tmp_path_factory.mktemp("pod-streams")
    with ExitStack() as stack:
        real = stack.enter_context(real_authentication_cluster(directory))
        yield stack.enter_context(embedded_authentication_cluster(directory)), real


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_both_servers_answer_alike(
    clusters: tuple[AuthenticationCluster, AuthenticationCluster],
    scenario: Callable[[AuthenticationCluster], Answers],
) -> None:
    ours, theirs = (scenario(cluster) for cluster in clusters)
    different = [label for label in theirs if ours.get(label) != theirs[label]]
    assert {label: ours.get(label) for label in different} == {label: theirs[label] for label in different}
