"""What is observed of a Database in one reconcile. Plans and phases are functions of these facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import Quantity
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import DatabaseBackup
from konverge_operators.database.engine import ArchiveState, Member, ObservedMembers
from konverge_operators.database.names import REVISION, claim_name, ordinal_of, pod_name
from konverge_operators.database.upgrade_jobs import JobState, attempt_of

__all__ = ["Facts", "capacity_of", "is_pod_ready"]

_RECOVERY: Final = timedelta(minutes=1)
"""How long a member may need to become ready again."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is observed: the children, what the engine says, and what is wrong.

    `revision` is that of the desired pod template. `violation` is a mistake in the spec, `missing` are Secrets that
    should exist, `unreachable` says why the engine could not be observed, `expansion_error` why claims cannot grow.
    `lost_claims` are the members that run on a claim that does not exist any more. `recovery_error` says why a recovery
    does not go on. `major` is the major version of the data, "" before there is any, `requested_major` that of the
    spec.
    """

    database: Database
    now: datetime
    revision: str = ""
    stateful_set: StatefulSet | None = None
    pods: tuple[Pod, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    observed: ObservedMembers = field(default_factory=ObservedMembers)
    violation: str = ""
    missing: tuple[str, ...] = ()
    unreachable: str = ""
    expansion_error: str = ""
    lost_claims: tuple[str, ...] = ()
    backups: tuple[DatabaseBackup, ...] = ()
    archive: ArchiveState = field(default_factory=ArchiveState)
    recovery_error: str = ""
    major: str = ""
    requested_major: str = ""
    upgrade_job: JobState = field(default_factory=JobState)

    @property
    def upgrade_requested(self) -> bool:
        """Whether the data has to be upgraded to another major version, and that has not failed."""
        return bool(self.major) and self.major != self.requested_major and not self.upgrade_error

    @property
    def upgrade_error(self) -> str:
        """Why the upgrade that the spec asks for has failed, "" if it has not."""
        upgrade = self.database.status.upgrade
        is_failed = self.major != self.requested_major and upgrade.attempt == attempt_of(self.database)
        return upgrade.message if is_failed else ""

    @property
    def upgrade_backup(self) -> DatabaseBackup | None:
        """The backup before the upgrade, if it exists."""
        name = self.database.status.upgrade.backup
        return next((one for one in self.backups if one.name == name), None)

    @property
    def initialized(self) -> bool:
        """Whether the members were initialised once."""
        return self.observed.initialized or self.database.status.initialized

    @property
    def restoring(self) -> bool:
        """Whether the data has to be restored before there are members."""
        return self.database.spec.recovery is not None and self.database.status.restored_at is None

    @property
    def replicas(self) -> int:
        """The number of members that the StatefulSet has to run; 0 without one."""
        found = self.stateful_set
        return 0 if found is None or found.spec.replicas is None else found.spec.replicas

    @property
    def set_is_current(self) -> bool:
        """Whether the StatefulSet controller has seen the last change, and the last change is the desired template."""
        found = self.stateful_set
        if found is None or found.spec.template.metadata is None:
            return False
        revision = (found.spec.template.metadata.annotations or {}).get(REVISION)
        return revision == self.revision and (found.status.observed_generation or 0) >= (found.metadata.generation or 0)

    @property
    def expected(self) -> tuple[str, ...]:
        """The names of the members that have to run."""
        return tuple(pod_name(self.database, ordinal) for ordinal in range(self.replicas))

    @property
    def stopping(self) -> tuple[str, ...]:
        """The pods that have to stop, and have not yet."""
        return tuple(one.name for one in self.pods if one.name not in self.expected)

    def pod(self, name: str) -> Pod | None:
        return next((one for one in self.pods if one.name == name), None)

    def member(self, name: str) -> Member:
        return self.observed.member(name)

    def is_healthy(self, name: str) -> bool:
        """Report whether a member serves: by its pod and by the engine."""
        pod = self.pod(name)
        return pod is not None and is_pod_ready(pod) and self.member(name).healthy

    def is_stale(self, pod: Pod) -> bool:
        """Report whether a pod was created from another template, and is not being deleted already."""
        is_current = (pod.metadata.annotations or {}).get(REVISION) == self.revision
        return not is_current and pod.metadata.deletion_timestamp is None

    def is_broken(self, pod: Pod) -> bool:
        """Report whether a pod is not ready for so long that it does not recover by itself.

        A switchover, or a probe on a busy machine, takes the readiness for a moment. Whoever replaced such a pod would
        kill a primary before it has handed over.
        """
        since = next((one.last_transition_time for one in pod.status.conditions or () if one.type == "Ready"), None)
        return not is_pod_ready(pod) and (since is None or self.now - since > _RECOVERY)

    @property
    def healthy(self) -> tuple[str, ...]:
        return tuple(name for name in self.expected if self.is_healthy(name))

    @property
    def stale(self) -> tuple[Pod, ...]:
        return tuple(one for one in self.pods if self.is_stale(one) and one.name in self.expected)

    @property
    def primary(self) -> str:
        """The member that accepts writes, if its pod is ready."""
        name = self.observed.primary
        pod = self.pod(name) if name else None
        return name if pod is not None and is_pod_ready(pod) else ""

    @property
    def without_synchronous(self) -> bool:
        """Whether commits have to wait for a replica, replicas are expected, and the engine has not chosen one yet.

        It does so some seconds after each failover. A primary that is lost before has no successor: only the members
        that the engine has chosen are known to have every commit.
        """
        wanted = self.database.spec.synchronous != "off" and self.replicas > 1
        return wanted and not any(self.member(name).synchronous for name in self.healthy)

    @property
    def claims_to_resize(self) -> tuple[PersistentVolumeClaim, ...]:
        """The claims of members that are smaller than the spec says."""
        wanted = Quantity(str(self.database.spec.storage_size))
        return tuple(one for one in self.claims if capacity_of(one) < wanted and self.is_used(one))

    def has_claim(self, pod: Pod) -> bool:
        """Report whether the claim that a pod was created with is known; one that is newer is another one."""
        name = claim_name(self.database, ordinal_of(pod.name))
        found = next((one for one in self.claims if one.name == name), None)
        created, since = pod.metadata.creation_timestamp, found.metadata.creation_timestamp if found else None
        return found is not None and (created is None or since is None or since <= created)

    def is_used(self, claim: PersistentVolumeClaim) -> bool:
        """Report whether a claim belongs to a member that runs; one that is left from scaling in grows when needed."""
        return ordinal_of(claim.name) < max(self.replicas, 1)


def is_pod_ready(pod: Pod) -> bool:
    """Report whether a pod is ready and not being deleted."""
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())
    return ready and pod.metadata.deletion_timestamp is None


def capacity_of(claim: PersistentVolumeClaim) -> Quantity:
    """Return the capacity of a claim; of one that is not bound yet its request."""
    capacity = (claim.status.capacity or {}).get("storage")
    resources = claim.spec.resources
    requested = (resources.requests or {}).get("storage") if resources is not None else None
    return Quantity(str(capacity or requested or "0"))
