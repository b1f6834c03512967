"""One container as a kubelet tells of it: waiting, running or ended, and how often it was started again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

__all__ = ["Terminated", "ContainerState", "parse_container_status", "format_time", "container_status"]

_IMAGE_ID: Final = "konverge.dev/image@sha256:"


@dataclass(frozen=True, slots=True)
class Terminated:
    """How a run ended."""

    code: int
    started: datetime
    finished: datetime
    reason: str = ""

    @property
    def word(self) -> str:
        """The reason, as it is usual for the code unless one was given."""
        return self.reason or ("Completed" if self.code == 0 else "Error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The state of one container: `running` since a moment, `ended`, or waiting for the reason in `waiting`."""

    name: str
    image: str
    waiting: str = "ContainerCreating"
    message: str = ""
    running: datetime | None = None
    ended: Terminated | None = None
    last: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it neither runs nor has ended."""
        return self.running is None and self.ended is None

    def waits(self, reason: str, message: str = "") -> ContainerState:
        """Give it as it waits for something; a run that ended becomes the last one."""
        last = self.ended or self.last
        return replace(
            self, waiting=reason, message=message, running=None, ended=None, last=last, ready=False, started=False
        )

    def starts(self, now: datetime) -> ContainerState:
        """Give it as it runs from now on."""
        again = self.ended is not None or self.last is not None
        last = self.ended or self.last
        restarts = self.restarts + again
        return replace(self, waiting="", message="", running=now, ended=None, last=last, restarts=restarts)

    def ends(self, code: int, now: datetime, reason: str = "") -> ContainerState:
        """Give it as it has ended now."""
        began = self.running or now
        ended = Terminated(code, began, now, reason)
        return replace(self, waiting="", message="", running=None, ended=ended, ready=False, started=False)


def format_time(moment: datetime) -> str:
    """Write a moment as objects keep it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_container_status(name: str, image: str, status: dict[str, Any] | None) -> ContainerState:
    """Read a container status; one that is missing has not begun."""
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
        ended=_read_ended(state.get("terminated")),
        last=_read_ended((status.get("lastState") or {}).get("terminated")),
        restarts=status.get("restartCount", 0),
        ready=status.get("ready", False),
        started=bool(status.get("started")),
    )


def _read_ended(state: dict[str, Any] | None) -> Terminated | None:
    if not state:
        return None
    finished = datetime.fromisoformat(state["finishedAt"])
    started = datetime.fromisoformat(state.get("startedAt") or state["finishedAt"])
    return Terminated(state.get("exitCode", 0), started, finished, state.get("reason", ""))


def container_status(run: ContainerState, uid: str) -> dict[str, Any]:
    """Write a container status, as a kubelet does."""
    begun = run.running is not None or run.ended is not None or run.last is not None
    identity = f"konverge://{uid}/{run.name}/{run.restarts}" if begun else ""
    # A container that waits to be started again is still the one that ended.
    before = identity if run.is_waiting else f"konverge://{uid}/{run.name}/{run.restarts - 1}"
    status: dict[str, Any] = {
        "name": run.name,
        "image": run.image,
        "imageID": _IMAGE_ID + sha256(run.image.encode()).hexdigest() if begun else "",
        "ready": run.ready,
        "restartCount": run.restarts,
        "started": run.started,
        "state": _write_state(run, identity),
        "lastState": {"terminated": _write_ended(run.last, before)} if run.last is not None else {},
    }
    return {**status, "containerID": identity} if identity else status


def _write_state(run: ContainerState, identity: str) -> dict[str, Any]:
    if run.running is not None:
        return {"running": {"startedAt": format_time(run.running)}}
    if run.ended is not None:
        return {"terminated": _write_ended(run.ended, identity)}
    waiting = {"reason": run.waiting, **({"message": run.message} if run.message else {})}
    return {"waiting": waiting}


def _write_ended(ended: Terminated, identity: str) -> dict[str, Any]:
    return {
        "exitCode": ended.code,
        "reason": ended.word,
        "startedAt": format_time(ended.started),
        "finishedAt": format_time(ended.finished),
        "containerID": identity,
    }
