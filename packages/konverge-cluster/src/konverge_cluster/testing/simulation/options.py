"""What an author passes to `simulate`, and how a failed check is reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from konverge.manager import Operator
from konverge.objects import Resource, Unstructured
from konverge_cluster.testing.clusters import TestCluster
from konverge_cluster.testing.simulation.schedules import FAULTS

if TYPE_CHECKING:
    from konverge_cluster.testing.simulation.runs import Simulation

__all__ = ["SimulationFailure", "SimulationKeywords", "SimulationOptions"]


class SimulationFailure(AssertionError):
    """An operator does not keep a promise that the simulation checks."""


class SimulationKeywords(TypedDict, total=False):
    """The optional arguments of `simulate`, which documents them."""

    samples: Iterable[Resource | Unstructured]
    seeds: int
    faults: int
    only: tuple[str, ...]
    each_write: bool
    replicas: int
    exclude: tuple[type[Resource], ...]
    counts: bool
    quiet: float
    nodes: int
    cluster: Callable[..., TestCluster]


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """The arguments of `simulate`. `build` returns the operator of a new process, given the external service."""

    build: Callable[[Any], Operator]
    scenario: Callable[[Simulation[Any]], Awaitable[None]]
    external: Callable[[], Any] | None = None
    samples: Iterable[Resource | Unstructured] = ()
    seeds: int = 50
    faults: int = 10
    only: tuple[str, ...] = ()
    each_write: bool = False
    replicas: int = 1
    exclude: tuple[type[Resource], ...] = ()
    counts: bool = True
    quiet: float = 60.0
    nodes: int = 1
    cluster: Callable[..., TestCluster] = TestCluster

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", tuple(self.samples))
        if self.replicas < 1:
            raise ValueError(f"replicas is the number of processes, at least 1, got {self.replicas}")
        if unknown := sorted({*self.only} - FAULTS.keys()):
            raise ValueError(f"only has {', '.join(unknown)}, but the faults are {', '.join(FAULTS)}")
