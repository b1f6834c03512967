"""The state of one container as a kubelet reports it: waiting, running or terminated, with its restart count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

__all__ = ["ContainerState", "Terminated", "container_status", "format_time", "parse_container_status"]

_IMAGE_ID: Final = "konverge.dev/image@sha256:"


@dataclass(frozen=True, slots=True)
class Terminated:
    """How a container terminated."""

    exit_code: int
    started: datetime
    finished: datetime
    reason: str = ""
    message: str = ""

    @property
    def reason_or_default(self) -> str:
        """The reason, by default the usual one for the exit code."""
        return self.reason or ("Completed" if self.exit_code == 0 else "Error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The state of one container: `running` since a time, `terminated`, or waiting for the reason in `waiting`."""

    name: str
    image: str
    waiting: str = "ContainerCreating"
    message: str = ""
    running: datetime | None = None
    terminated: Terminated | None = None
    last_terminated: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it neither runs nor has terminated."""
        return self.running is None and self.terminated is None

    def wait(self, reason: str, message: str = "") -> ContainerState:
        """Return the state of waiting for `reason`; a terminated state becomes the last one."""
        last_terminated = self.terminated or self.last_terminated
        return replace(
            self,
            waiting=reason,
            message=message,
            running=None,
            terminated=None,
            last_terminated=last_terminated,
            ready=False,
            started=False,
        )

    def start(self, now: datetime) -> ContainerState:
        """Return the state of running from now on."""
        again = self.terminated is not None or self.last_terminated is not None
        last_terminated = self.terminated or self.last_terminated
        restarts = self.restarts + again
        return replace(
            self,
            waiting="",
            message="",
            running=now,
            terminated=None,
            last_terminated=last_terminated,
            restarts=restarts,
        )

    def terminate(self, exit_code: int, now: datetime, reason: str = "") -> ContainerState:
        """Return the state of having terminated now."""
        started = self.running or now
        terminated = Terminated(exit_code, started, now, reason)
        return replace(self, waiting="", message="", running=None, terminated=terminated, ready=False, started=False)


def format_time(time: datetime) -> str:
    """Format a time as in API objects, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_container_status(name: str, image: str, status: dict[str, Any] | None) -> ContainerState:
    """Parse a container status; a missing one is a container that has not started."""
    if status is None:
        return ContainerState(name=name, image=image)
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    running = (state.get("running") or {}).get("startedAt")
    return ContainerState(
        name=name,
        image=image,
        waiting=waiting.get("reason", ""),
        message=waiting.get("message", ""),
        running=datetime.fromisoformat(running) if running else None,
        terminated=_parse_terminated(state.get("terminated")),
        last_terminated=_parse_terminated((status.get("lastState") or {}).get("terminated")),
        restarts=status.get("restartCount", 0),
        ready=status.get("ready", False),
        started=bool(status.get("started")),
    )


def _parse_terminated(state: dict[str, Any] | None) -> Terminated | None:
    if not state:
        return None
    finished = datetime.fromisoformat(state["finishedAt"])
    started = datetime.fromisoformat(state.get("startedAt") or state["finishedAt"])
    return Terminated(state.get("exitCode", 0), started, finished, state.get("reason", ""), state.get("message", ""))


def container_status(state: ContainerState, uid: str) -> dict[str, Any]:
    """Return the container status that a kubelet writes."""
    has_started = state.running is not None or state.terminated is not None or state.last_terminated is not None
    container_id = f"konverge://{uid}/{state.name}/{state.restarts}" if has_started else ""
    # A container that waits for its restart still has the ID of the one that terminated.
    last_container_id = container_id if state.is_waiting else f"konverge://{uid}/{state.name}/{state.restarts - 1}"
    status: dict[str, Any] = {
        "name": state.name,
        "image": state.image,
        "imageID": _IMAGE_ID + sha256(state.image.encode()).hexdigest() if has_started else "",
        "ready": state.ready,
        "restartCount": state.restarts,
        "started": state.started,
        "state": _state_status(state, container_id),
        "lastState": {"terminated": _terminated_status(state.last_terminated, last_container_id)}
        if state.last_terminated is not None
        else {},
    }
    return {**status, "containerID": container_id} if container_id else status


def _state_status(state: ContainerState, container_id: str) -> dict[str, Any]:
    if state.running is not None:
        return {"running": {"startedAt": format_time(state.running)}}
    if state.terminated is not None:
        return {"terminated": _terminated_status(state.terminated, container_id)}
    waiting = {"reason": state.waiting, **({"message": state.message} if state.message else {})}
    return {"waiting": waiting}


def _terminated_status(terminated: Terminated, container_id: str) -> dict[str, Any]:
    status = {
        "exitCode": terminated.exit_code,
        "reason": terminated.reason_or_default,
        "startedAt": format_time(terminated.started),
        "finishedAt": format_time(terminated.finished),
        "containerID": container_id,
    }
    return {**status, "message": terminated.message} if terminated.message else status
