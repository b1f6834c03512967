"""What a member does next: pure functions of the record, of what all members report, and of its name state.

The record is one ConfigMap, which outlives the pods. A report is an annotation of a pod. Rules that hold here:

1. A member whose report says `waiting` runs no server, and its position is that of its data. It changes its report
   before it starts the server. So a list of the pods is a list of positions that do not change.
2. Only one member accepts writes, the recorded primary, and only after it is recorded. It is recorded when it has
   applied everything that was replicated before. So the recorded primary has every acknowledged write.
3. The record has all members of the last primary component that has accepted writes: a member is recorded before it
   joins, or the others could go on without a write that it alone has applied. After a complete outage all of them have
   to report their positions, and the most advanced one bootstraps. One that reports no data is proved gone.
4. A member whose data belongs to another history, or is ahead of the component, never joins: joining would replace its
   data.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "EMPTY",
    "QUORUM_LIMIT",
    "Bootstrap",
    "Component",
    "Hold",
    "Join",
    "Position",
    "Record",
    "Report",
    "Start",
    "State",
    "is_stop_needed",
    "next_record",
    "next_start",
    "ordinal_of",
    "with_member",
]

State: TypeAlias = Literal["unknown", "waiting", "starting", "running"]
QUORUM_LIMIT: Final = 10.0
"""Seconds after which a lost quorum is reported, and a member stops for others that need it."""


@dataclass(frozen=True)
class Position:
    """Where data is in the history of a cluster. Without a uuid there is no complete data."""

    uuid: str = ""
    seqno: int = -1


EMPTY: Final = Position()


@dataclass(frozen=True)
class Report:
    """What a member says of itself. The position is that of its data while it waits."""

    state: State = "unknown"
    position: Position = EMPTY
    component: bool = False
    """Whether it is in the primary component: the one that has the quorum."""
    synced: bool = False
    reason: str = ""
    """Why it does not run, in one word, after some time: NoQuorum or Diverged."""
    message: str = ""

    @classmethod
    def parse(cls, text: str) -> Report:
        """Return a report as a pod has it; of a pod without one nothing is known."""
        try:
            values: dict[str, Any] = json.loads(text)
            values["position"] = Position(**values["position"])
            return cls(**values)
        except (ValueError, TypeError, KeyError):
            return cls()

    def format(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Record:
    """The history that the cluster has, its primary, and the members of the component that has accepted writes."""

    uuid: str
    primary: str
    members: tuple[str, ...]
    switchover: str = ""
    """The member that has to become the primary, if one was requested."""

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Record | None:
        """Return the record of a ConfigMap; None while the cluster is not initialised."""
        if not data.get("uuid"):
            return None
        members = tuple(filter(None, data.get("members", "").split(",")))
        return cls(data["uuid"], data.get("primary", ""), members, data.get("switchover", ""))

    def format(self) -> dict[str, str]:
        values = {"uuid": self.uuid, "primary": self.primary, "members": ",".join(self.members)}
        return {**values, "switchover": self.switchover}


@dataclass(frozen=True)
class Component:
    """The primary component as one of its members sees it."""

    uuid: str
    members: tuple[str, ...]
    is_complete: bool
    """Whether this member has applied everything that was replicated before the component was formed."""


@dataclass(frozen=True)
class Hold:
    """Wait. `reason` is one for people to act on, or "" when members are about to start."""

    message: str
    reason: str = ""


@dataclass(frozen=True)
class Bootstrap:
    """Start a primary component with the data that is there, or with new data."""


@dataclass(frozen=True)
class Join:
    """Join the primary component of these members, which fetches what is missing."""

    members: tuple[str, ...]


Start: TypeAlias = Hold | Bootstrap | Join


def ordinal_of(name: str) -> int:
    """Return the ordinal of a pod by its name."""
    return int(name.rpartition("-")[2])


def next_start(
    member: str, record: Record | None, reports: Mapping[str, Report], live: Mapping[str, Position], *, diverged: bool
) -> Start:
    """Return how a member that does not run starts.

    `reports` are those of all pods that exist, with its own. `live` are the members that have answered just now that
    they are in the primary component, with their positions. `diverged` is whether it was found before that its data
    is not that of the component.
    """
    position = reports[member].position
    if record is None:
        return _next_first_start(member, reports)
    is_ahead = bool(live) and all(_is_ahead(position, other) for other in live.values())
    if diverged or is_ahead or _is_foreign(position, record):
        return Hold(_describe_divergence(member, position), "Diverged")
    if live:
        return Join(tuple(sorted(live, key=ordinal_of)))
    return _next_recovery(member, record, reports)


def with_member(record: Record, member: str) -> Record:
    """Return the record with a member that is about to join."""
    return replace(record, members=tuple(sorted({*record.members, member}, key=ordinal_of)))


def next_record(
    member: str, record: Record | None, component: Component, reports: Mapping[str, Report]
) -> Record | None:
    """Return the record that a member of the primary component has to write, or None.

    The first member that can serve leads when the recorded primary is not in the component, or starts again in it. The
    primary keeps the members up to date; one that is about to join stays recorded.
    """
    if not component.is_complete or member not in component.members:
        return None
    synced = {member, *(name for name, one in reports.items() if one.synced)}
    known = record.members if record is not None else ()
    joining = [name for name in known if reports.get(name, Report()).state == "starting"]
    members = tuple(sorted({*component.members, *joining}, key=ordinal_of))
    present = sorted(component.members, key=ordinal_of)
    if record is None:
        return Record(component.uuid, member, members) if member == _first(present, synced) else None
    if record.primary not in component.members or record.primary not in synced:
        wanted = Record(component.uuid, member, members) if member == _first(present, synced) else record
    elif record.primary != member:
        wanted = record
    elif record.switchover and record.switchover != member and record.switchover in synced:
        wanted = replace(record, primary=record.switchover, members=members, switchover="")
    else:
        wanted = replace(record, uuid=component.uuid, members=members, switchover="")
    return wanted if wanted != record else None


def is_stop_needed(others: Iterable[Report]) -> bool:
    """Report whether a member without a quorum has to stop and report its position, if this lasts for `QUORUM_LIMIT`.

    As long as all others are without a quorum too, they may find each other again by themselves. One that has stopped
    waits for a position, and a component without this member does not wait for it. Members that were frozen believe
    for some seconds that they are still in a component.
    """
    return any(one.state == "waiting" or one.component for one in others)


def _next_first_start(member: str, reports: Mapping[str, Report]) -> Start:
    """Return how a member starts while there is no record: the first member, alone, or the most advanced of all."""
    if set(reports) == {member} and ordinal_of(member) == 0:
        return Bootstrap()
    known = {one.position.uuid for one in reports.values() if one.position.uuid}
    if len(known) != 1:
        return Hold("the first member initialises the cluster" if not known else "the members have different data")
    return _next_recovery(member, Record(known.pop(), "", tuple(reports)), reports)


def _next_recovery(member: str, record: Record, reports: Mapping[str, Report]) -> Start:
    """Return how a member starts when none runs."""
    found = {name: reports.get(name, Report()) for name in record.members}
    missing = sorted(name for name, one in found.items() if one.state != "waiting")
    if missing:
        return Hold(_describe_quorum(missing), "NoQuorum")
    foreign = sorted(name for name, one in found.items() if _is_foreign(one.position, record))
    if foreign:
        return Hold(f"the data of {', '.join(foreign)} belongs to another cluster", "Diverged")
    waiting = {name: one.position for name, one in reports.items() if one.state == "waiting"}
    ranked = [(one.seqno, -ordinal_of(name), name) for name, one in waiting.items() if one.uuid == record.uuid]
    if not ranked:
        return Hold("no member has data: restore a backup into a new Database", "NoData")
    best = max(ranked)[2]
    return Bootstrap() if best == member else Hold(f"{best} has the newest data and starts first")


def _first(members: Sequence[str], synced: Collection[str]) -> str:
    return next((name for name in members if name in synced), "")


def _is_foreign(position: Position, record: Record) -> bool:
    return position.uuid not in ("", record.uuid)


def _is_ahead(position: Position, other: Position) -> bool:
    return position.uuid == other.uuid and position.seqno > other.seqno


def _describe_divergence(member: str, position: Position) -> str:
    return (
        f"{member} has writes that the others do not have ({position.uuid}:{position.seqno}); it is left as it is."
        f" Save what you need, then delete its claim and its pod"
    )


def _describe_quorum(missing: Sequence[str]) -> str:
    return (
        f"the position of {', '.join(missing)} is not known, so a member without the newest data could lead."
        f" Bring it back; if its data is lost, delete its claim and its pod"
    )
