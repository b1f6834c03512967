"""When the containers of a deleted pod stop, and with which exit code. All of it follows from the pod.

Rules that hold here:

1. The preStop hook runs first: `sleep`, or an `exec` of a command that is simple enough to follow. The grace period
   includes it. SIGTERM follows, and SIGKILL at the end of the grace period, at least 2 s after SIGTERM.
2. Sidecars get SIGTERM when the main containers have stopped, the last one first.
3. A container that exits by itself earlier keeps its own exit code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from konverge_cluster.nodes.commands import hook_result

__all__ = ["ContainerStop", "RunningContainer", "container_stops"]

_MINIMUM_WINDOW: Final = 2.0
_SIGTERM_EXIT_CODE: Final = 143
_SIGKILL_EXIT_CODE: Final = 137


@dataclass(frozen=True)
class RunningContainer:
    """A container that runs: how long it takes to stop, and when it exits by itself, if it does."""

    container: Mapping[str, Any]
    sidecar: bool
    stop_seconds: float
    exits_at: datetime | None
    exit_code: int


@dataclass(frozen=True)
class ContainerStop:
    """When a container stops and with which exit code; `hook_failed` if its preStop hook fails."""

    name: str
    at: datetime
    exit_code: int
    hook_failed: bool = False


def container_stops(
    pod: Mapping[str, Any], running: Iterable[RunningContainer], *, deleted: datetime, stopped: datetime, grace: float
) -> Iterator[ContainerStop]:
    """Yield how each running container of a deleted pod stops, main containers first.

    `deleted` is when the pod was deleted, `stopped` when the last of its other containers stopped.
    """
    containers = list(running)
    stage = max(deleted, stopped)
    for main in (one for one in containers if not one.sidecar):
        stop = _stop(pod, main, deleted=deleted, after=deleted, grace=grace)
        stage = max(stage, stop.at)
        yield stop
    for sidecar in reversed([one for one in containers if one.sidecar]):
        stop = _stop(pod, sidecar, deleted=deleted, after=stage, grace=grace)
        stage = max(stage, stop.at)
        yield stop


def _stop(
    pod: Mapping[str, Any], running: RunningContainer, *, deleted: datetime, after: datetime, grace: float
) -> ContainerStop:
    """Return how a container stops that gets SIGTERM when its hook has ended, and not before `after`."""
    hook = hook_result(((running.container.get("lifecycle") or {}).get("preStop")) or {}, running.container, pod)
    signaled = max(after, deleted + timedelta(seconds=min(hook.seconds, grace)))
    window = max(grace - (signaled - deleted).total_seconds(), _MINIMUM_WINDOW if grace else 0.0)
    at = signaled + timedelta(seconds=min(running.stop_seconds, window))
    code = _SIGKILL_EXIT_CODE if running.stop_seconds > window else _SIGTERM_EXIT_CODE
    if running.exits_at is not None and running.exits_at <= at:
        at, code = running.exits_at, running.exit_code
    failed = hook.exit_code != 0 or hook.seconds > grace
    return ContainerStop(running.container["name"], at, code, hook_failed=failed)
