"""Scenarios on the embedded cluster and on a real one: what each leaves at its points, and the comparison of both."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pytest

from konverge.client import Client, load_config
from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, find_binaries, run_in_virtual_time
from konverge.testing.binaries import NEEDED
from quiet_namespaces import QuietNamespaces
from workload_clusters import WorkloadCluster, real_workload_cluster

__all__ = ["Pages", "ScenarioComparison", "fail_on_differences"]

Pages = dict[str, tuple[Any, Any]]
"""By scenario: what it leaves on the real cluster, and on ours."""

# The nodes of most scenarios send no heartbeats: a slow scenario must not see them declared dead.
PATIENT = ("--node-monitor-grace-period=1h",)


class RecordedPages(Protocol):
    """What a scenario records its points in."""

    pages: dict[str, Any]


ClusterT = TypeVar("ClusterT", bound=WorkloadCluster)
NotesT = TypeVar("NotesT", bound=RecordedPages)


@asynccontextmanager
async def _nothing(_: object) -> AsyncGenerator[None]:
    yield


@dataclass(frozen=True, kw_only=True)
class ScenarioComparison(Generic[ClusterT, NotesT]):
    """Scenarios, and the clusters that they run on.

    On the real server the scenarios of one group run side by side, each in a namespace of its own; the groups run one
    after the other. `beside` runs beside all of them, `around` around each. `notes` gets the cluster and, on the real
    one, the pages that are expected.
    """

    groups: Sequence[Mapping[str, Callable[[ClusterT, NotesT], Awaitable[None]]]]
    notes: Callable[[ClusterT, dict[str, Any] | None], NotesT]
    embedded: Callable[[], AbstractAsyncContextManager[ClusterT]]
    real: Callable[[Client, str, QuietNamespaces], ClusterT]
    watched: Sequence[str]
    beside: Callable[[Client], AbstractAsyncContextManager[None]] = _nothing
    around: Callable[[ClusterT], AbstractAsyncContextManager[None]] = _nothing

    def run(self, *, flags: Sequence[str] = (), manager_flags: Sequence[str] = PATIENT) -> Pages:
        """Run all scenarios on both; skip the test when the real programs are not built."""
        try:
            find_binaries((*NEEDED, "kube-controller-manager"))
        except ControlPlaneError as missing:
            pytest.skip(str(missing))
        names = [name for group in self.groups for name in group]
        ours = {name: run_in_virtual_time(self._run_embedded(name), debug=False) for name in names}
        both = [*flags, *manager_flags]
        with ControlPlane(controller_manager=True, extra_flags=list(flags), manager_flags=both) as plane:
            theirs = asyncio.run(self._run_real(plane, ours))
        return {name: (theirs[name], ours[name]) for name in names}

    async def _run_embedded(self, name: str) -> dict[str, Any]:
        async with self.embedded() as cluster:
            notes = self.notes(cluster, None)
            await self._scenario(name)(cluster, notes)
            return notes.pages

    async def _run_real(self, plane: ControlPlane, expected: dict[str, Any]) -> dict[str, Any]:
        pages: dict[str, Any] = {}

        async def run(number: int, name: str) -> None:
            # The last letter ends the number, so that no name is the beginning of another one.
            async with real_workload_cluster(plane, f"scenario-{number}x", quiet_namespaces) as base:
                cluster = self.real(client, base.namespace, quiet_namespaces)
                notes = self.notes(cluster, expected[name])
                async with self.around(cluster):
                    try:
                        await self._scenario(name)(cluster, notes)
                    except Exception as error:  # reported by the test of this scenario, not by all
                        notes.pages["failed"] = repr(error)
                pages[name] = notes.pages

        async with (
            Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client,
            self.beside(client),
            QuietNamespaces(self.watched).watched(client) as quiet_namespaces,
        ):
            numbers = {name: number for number, name in enumerate(expected)}
            for group in self.groups:
                async with asyncio.TaskGroup() as tasks:
                    for name in group:
                        tasks.create_task(run(numbers[name], name))
        return pages

    def _scenario(self, name: str) -> Callable[[ClusterT, NotesT], Awaitable[None]]:
        return next(group[name] for group in self.groups if name in group)


def fail_on_differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Fail with the lines in which the pages of a scenario differ."""
    different = [line for point in theirs for line in _differences(point, theirs[point], ours.get(point))]
    if different:
        pytest.fail("\n".join(different), pytrace=False)
    assert ours.keys() == theirs.keys()


def _differences(point: str, real: Any, ours: Any) -> Iterator[str]:
    one, other = (json.dumps(page, indent=1, sort_keys=True).splitlines() for page in (real, ours))
    return difflib.unified_diff(one, other, f"{point}: real", f"{point}: ours", n=3, lineterm="")
