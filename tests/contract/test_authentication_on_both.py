"""Authentication on the embedded cluster and on a real one: the same requests, the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from access_commands import ACCESS_SCENARIOS
from authentication_clusters import (
    AuthenticationCluster,
    embedded_authentication_cluster,
    real_authentication_cluster,
)
from authentication_scenarios import SCENARIOS, Answers
from certificate_scenarios import CERTIFICATE_SCENARIOS
from secret_token_scenarios import SECRET_SCENARIOS

pytestmark = pytest.mark.control_plane

ALL = (*SCENARIOS, *SECRET_SCENARIOS, *CERTIFICATE_SCENARIOS, *ACCESS_SCENARIOS)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AuthenticationCluster, AuthenticationCluster]]:
    """The embedded cluster and a real one."""
    directory = tmp_path_factory.mktemp("authentication")
    with ExitStack() as stack:
        real = stack.enter_context(real_authentication_cluster(directory))
        yield stack.enter_context(embedded_authentication_cluster(directory)), real


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.__name__)
def test_both_servers_answer_alike(
    clusters: tuple[AuthenticationCluster, AuthenticationCluster],
    scenario: Callable[[AuthenticationCluster], Answers],
) -> None:
    ours, theirs = (scenario(cluster) for cluster in clusters)
    different = [label for label in theirs if ours.get(label) != theirs[label]]
    assert {label: ours.get(label) for label in different} == {label: theirs[label] for label in different}
