"""The writes of a StatefulSet to its pods and their claims, each with an event."""

from __future__ import annotations

from datetime import datetime

from konverge.errors import AlreadyExists, ApiError, Conflict, KonvergeError
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.reconcile import Context
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.server_messages import is_namespace_terminating, server_message
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.facts import is_being_deleted
from konverge_cluster.workloads.stateful_sets.identity import (
    claims_of,
    identity_matches,
    set_identity,
    set_volumes,
    storage_matches,
)
from konverge_cluster.workloads.stateful_sets.retention import (
    deletes_when_scaled,
    has_unexpected_controller,
    is_stale,
    is_up_to_date,
    updated_references,
)

__all__ = ["StatefulPodControl"]


class StatefulPodControl:
    """Creates, updates and deletes the pods of a StatefulSet, and creates their claims.

    A failure is recorded as an event about the StatefulSet and raised.
    """

    def __init__(self, stateful_set: StatefulSet, ctx: Context, now: datetime) -> None:
        self._stateful_set = stateful_set
        self._ctx = ctx
        self._now = now
        self._client = controller_client(ctx)

    # Pods

    async def create(self, pod: Pod) -> Pod:
        """Create a pod, after its claims; return it as created."""
        await self._create_claims(pod, verb="Create")
        try:
            created = await self._client.create(pod)
            await self._follow_retention_policy(created)
        except AlreadyExists:
            raise  # another pod has the name, or the cache is outdated
        except KonvergeError as error:
            self._record_failure("Create", pod, error)
            raise
        self._record("Create", pod)
        return created

    async def update(self, pod: Pod) -> Pod:
        """Restore the identity and volumes of a pod, and the owner references of its claims, where they differ."""
        outdated = await self._outdated_claims(pod)
        identity, storage = identity_matches(self._stateful_set, pod), storage_matches(self._stateful_set, pod)
        if identity and storage and not outdated:
            return pod
        if not storage:
            set_volumes(self._stateful_set, pod)
            await self._create_claims(pod, verb="Update")
        try:
            if outdated:
                await self._follow_retention_policy(pod)
            if not identity or not storage:
                set_identity(pod)
                pod = await self._client.update(pod)
        except Conflict:
            raise  # the pod has changed: the next attempt decides again
        except KonvergeError as error:
            self._record_failure("Update", pod, error)
            raise
        self._record("Update", pod)
        return pod

    async def delete(self, pod: Pod) -> None:
        """Delete a pod, and mark it as being deleted; one that is already gone counts as deleted."""
        try:
            await self._client.delete(pod, missing_ok=True)
        except KonvergeError as error:
            self._record_failure("Delete", pod, error)
            raise
        pod.metadata.deletion_timestamp = truncate_to_seconds(self._now)
        self._record("Delete", pod)

    # Claims

    async def has_stale_claim(self, pod: Pod) -> bool:
        """Report whether a claim is still to be deleted with an earlier pod of this name; then this one must wait."""
        return deletes_when_scaled(self._stateful_set) and any(
            is_stale(claim, pod) for claim in await self._claims(pod)
        )

    async def create_missing_claims(self, pod: Pod) -> None:
        """Create the claims that a pending pod lacks."""
        await self._create_claims(pod)
        try:
            await self._follow_retention_policy(pod)
        except KonvergeError as error:
            self._record_failure("Update", pod, error)
            raise

    async def restore_retention_policy(self, pod: Pod) -> None:
        """Update the owner references of the claims of a condemned pod, if they differ."""
        if await self._outdated_claims(pod):
            await self._follow_retention_policy(pod)

    # Internals

    async def _claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        """Return the existing claims of a pod."""
        found = [await self._ctx.get(PersistentVolumeClaim, one.key) for one in claims_of(self._stateful_set, pod)]
        return [claim for claim in found if claim is not None]

    async def _outdated_claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        return [claim for claim in await self._claims(pod) if not is_up_to_date(claim, self._stateful_set, pod)]

    async def _create_claims(self, pod: Pod, *, verb: str = "") -> None:
        """Create each claim that does not exist; `verb` is what fails for the pod if a claim cannot be created.

        Raises: KonvergeError when one cannot be created, or is being deleted, after all others were created.
        """
        failures: dict[str, KonvergeError] = {}
        for claim in claims_of(self._stateful_set, pod):
            existing = await self._ctx.get(PersistentVolumeClaim, claim.key)
            if existing is not None and is_being_deleted(existing):
                message = f"pvc {claim.name} is being deleted"
                failures[message] = Conflict(message)
            elif existing is None:
                try:
                    await self._create_claim(claim, pod)
                except KonvergeError as error:
                    failures[f"failed to create PVC {claim.name}: {server_message(error)}"] = error
        if failures:
            first = next(iter(failures.values()))
            if verb:
                texts = ", ".join(failures)
                self._record_failure(verb, pod, first, text=texts if len(failures) == 1 else f"[{texts}]")
            raise first

    async def _create_claim(self, claim: PersistentVolumeClaim, pod: Pod) -> None:
        where = f"Pod {pod.name} in StatefulSet {self._stateful_set.name}"
        try:
            await self._client.create(claim)
        except AlreadyExists:
            raise  # the cache is outdated
        except ApiError as error:
            if not is_namespace_terminating(error):
                text = f"Create Claim {claim.name} for {where} failed error: {server_message(error)}"
                self._ctx.event("FailedCreate", text, warning=True)
            raise
        self._ctx.event("SuccessfulCreate", f"Create Claim {claim.name} {where} success")

    async def _follow_retention_policy(self, pod: Pod) -> None:
        for claim in await self._claims(pod):
            if has_unexpected_controller(claim, self._stateful_set, pod):
                text = (
                    f"PersistentVolumeClaim {claim.name} has a conflicting OwnerReference that acts as a manging "
                    "controller, the retention policy is ignored for this claim"
                )
                self._ctx.event("ConflictingController", text, warning=True)
            if not is_up_to_date(claim, self._stateful_set, pod):
                claim.metadata.owner_references = updated_references(claim, self._stateful_set, pod)
                await self._client.update(claim)

    def _record(self, verb: str, pod: Pod) -> None:
        text = f"{verb} Pod {pod.name} in StatefulSet {self._stateful_set.name} successful"
        self._ctx.event(f"Successful{verb}", text)

    def _record_failure(self, verb: str, pod: Pod, error: KonvergeError, *, text: str = "") -> None:
        if is_namespace_terminating(error):
            return
        where = f"{verb} Pod {pod.name} in StatefulSet {self._stateful_set.name}"
        self._ctx.event(f"Failed{verb}", f"{where} failed error: {text or server_message(error)}", warning=True)
