"""What Patroni has written into the cluster: its ConfigMaps, and the annotation of each pod.

Nothing here asks a member. Patroni writes the state of a member when it changes and renews the leader's lock every few
seconds; whether a member answers at all is the readiness of its pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge_operators.database.engine import Member, ObservedMembers, Role
from konverge_operators.database.postgresql.configuration import ROLE_LABEL

__all__ = ["Store", "member_state", "observed_members"]

_STATUS: Final = "status"
_POSITIONS: Final = frozenset({"xlog_location", "replay_lsn", "receive_lsn"})


@dataclass(frozen=True)
class Store:
    """Patroni's ConfigMaps of one cluster: the annotations of each, by the last part of its name."""

    entries: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, name: str, config_maps: Iterable[ConfigMap]) -> Store:
        """Return the store of a cluster; ConfigMaps with other names are ignored."""
        prefix = f"{name}-"
        return cls(
            {
                one.name.removeprefix(prefix): dict(one.metadata.annotations)
                for one in config_maps
                if one.name.startswith(prefix)
            }
        )

    def value(self, entry: str, key: str) -> str:
        """Return a value, "" if it is missing."""
        return self.entries.get(entry, {}).get(key, "")

    @property
    def initialized(self) -> bool:
        """Whether a member has initialised the cluster: the key is the system identifier then, empty before."""
        return bool(self.value("config", "initialize"))

    @property
    def settings(self) -> Any:
        """The dynamic configuration, None if there is none yet."""
        text = self.value("config", "config")
        return json.loads(text) if text else None

    @property
    def major(self) -> str:
        """The major version of the data."""
        settings = self.settings
        found = cast("dict[str, Any]", settings) if isinstance(settings, dict) and self.initialized else {}
        return str(found.get("major", ""))

    @property
    def leader(self) -> str:
        """The member that has the lock."""
        return self.value("leader", "leader")

    @property
    def synchronous(self) -> frozenset[str]:
        """The replicas that a commit waits for."""
        return frozenset(filter(None, self.value("sync", "sync_standby").split(",")))

    @property
    def switchover_pending(self) -> bool:
        """Whether a switchover was requested and is not done: Patroni removes the request at its end."""
        return bool(self.value("failover", "leader") or self.value("failover", "member"))


def observed_members(pods: Sequence[Pod], store: Store, settings: Mapping[str, Any]) -> ObservedMembers:
    """Return what is known of the members; `settings` are those that the spec asks for."""
    members = tuple(_member(pod, store) for pod in pods)
    primaries = [one.name for one in members if one.role == "primary" and one.healthy]
    return ObservedMembers(
        initialized=store.initialized,
        members=members,
        primary=primaries[0] if primaries else "",
        major=store.major,
        config_current=store.settings is None or store.settings == settings,
        switchover_pending=store.switchover_pending,
    )


def member_state(pod: Pod) -> dict[str, Any]:
    """Return what a member has written about itself, without its position, which every write moves."""
    return {key: value for key, value in _status(pod).items() if key not in _POSITIONS}


def _member(pod: Pod, store: Store) -> Member:
    status = _status(pod)
    role = _role(pod, status, store)
    streams = role == "primary" or status.get("replication_state") == "streaming"
    return Member(
        name=pod.name,
        role=role,
        state=str(status.get("replication_state") or status.get("state") or "unknown"),
        healthy=role != "unknown" and streams and status.get("state") == "running" and _is_ready(pod),
        timeline=status.get("timeline"),
        lag=_lag(status, store) if role == "replica" else None,
        pending_restart=bool(status.get("pending_restart")),
        synchronous=pod.name in store.synchronous,
        version=_version(pod) if status else "",
    )


def _status(pod: Pod) -> dict[str, Any]:
    text = pod.metadata.annotations.get(_STATUS, "")
    found: Any = json.loads(text) if text else {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _role(pod: Pod, status: Mapping[str, Any], store: Store) -> Role:
    """Return the role: only the member with the lock is a primary, whatever its label still says."""
    label = pod.metadata.labels.get(ROLE_LABEL)
    if pod.name == store.leader:
        return "primary" if status.get("role") == "primary" else "unknown"
    return "replica" if label == "replica" else "unknown"


def _lag(status: Mapping[str, Any], store: Store) -> int | None:
    sent, received = store.value("leader", "optime"), status.get("xlog_location")
    return max(0, int(sent) - int(received)) if sent and received is not None else None


def _is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def _version(pod: Pod) -> str:
    """Return the release of the image that the pod runs."""
    images = [one.image or "" for one in pod.spec.containers]
    return images[0].rpartition(":")[2] if images else ""
