"""The writes of a Deployment: its ReplicaSets, each change with an event, and its own status and revision."""

from __future__ import annotations

from datetime import datetime

from konverge.errors import AlreadyExists, KonvergeError
from konverge.k8s.apps.v1 import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import ObjectMeta, replace
from konverge.objects.conditions import ConditionStatus
from konverge.reconcile import Context
from konverge_cluster.server_messages import is_namespace_terminating, server_message
from konverge_cluster.status_writes import controller_client, write_status
from konverge_cluster.workloads.deployments.conditions import PROGRESSING, condition_of, new_condition, set_condition
from konverge_cluster.workloads.deployments.revisions import (
    REVISION,
    highest_revision,
    replica_annotations,
    revision_annotations,
)
from konverge_cluster.workloads.deployments.rolling import new_replicas
from konverge_cluster.workloads.deployments.sizes import limits_of, size
from konverge_cluster.workloads.deployments.status import ReplicaSets, has_deadline
from konverge_cluster.workloads.deployments.templates import (
    HASH,
    replica_set_name,
    same_template,
    template_hash,
    with_hash_label,
)
from konverge_cluster.workloads.pods.claims import controller_of, owner_reference

__all__ = ["DeploymentControl"]


class DeploymentControl:
    """The writes of one sync of a Deployment; `deployment` is always the last written state.

    `wrote` reports whether anything was written: then the state has changed, and another sync is needed.
    """

    def __init__(self, deployment: Deployment, ctx: Context, now: datetime) -> None:
        self.deployment = deployment
        self.now = now
        self.wrote = False
        self._ctx = ctx
        self._client = controller_client(ctx)

    # Status

    async def write_status(self, status: DeploymentStatus, *, revision: str = "") -> None:
        """Write the status and the revision if they differ; annotations are written through the status, too."""
        annotations = dict(self.deployment.metadata.annotations)
        if revision:
            annotations[REVISION] = revision
        version = self.deployment.resource_version
        self.deployment = await write_status(self._ctx, self.deployment, status, annotations=annotations)
        self.wrote = self.wrote or self.deployment.resource_version != version

    async def record_progress(self, status: ConditionStatus, reason: str, message: str, *, revision: str = "") -> None:
        """Write the Progressing condition, if the rollout has a deadline, and the revision."""
        status_ = self.deployment.status
        if has_deadline(self.deployment):
            condition = new_condition(PROGRESSING, status, reason=reason, message=message, now=self.now)
            status_ = replace(status_, conditions=set_condition(status_.conditions, condition))
        await self.write_status(status_, revision=revision)

    # ReplicaSets

    async def set_revision(self, sets: ReplicaSets) -> ReplicaSets:
        """Set the revision and annotations of the new ReplicaSet, and the revision of the Deployment."""
        new, deployment = sets.new, self.deployment
        if new is None:
            return sets
        revision = highest_revision(sets.old) + 1
        annotations = revision_annotations(new.metadata.annotations, deployment.metadata.annotations, revision)
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            new.metadata.annotations = annotations
            new.spec.min_ready_seconds = deployment.spec.min_ready_seconds
            return ReplicaSets(await self._update(new), sets.old)
        number = annotations.get(REVISION, "")
        if condition_of(deployment.status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.name}"'
            await self.record_progress("True", "FoundNewReplicaSet", message, revision=number)
        else:
            await self.write_status(deployment.status, revision=number)
        return sets

    async def create(self, sets: ReplicaSets) -> ReplicaSets:
        """Create the ReplicaSet of the current template.

        Raises: AlreadyExists when another object has its name; the next attempt uses another name.
                KonvergeError when the request fails, after an event and a condition.
        """
        desired = self._new_replica_set(sets)
        try:
            created = await self._client.create(desired)
        except AlreadyExists:
            return ReplicaSets(await self._existing(desired), sets.old)
        except KonvergeError as error:
            if not is_namespace_terminating(error):
                message = f'Failed to create new replica set "{desired.name}": {server_message(error)}'
                await self.record_progress("False", "ReplicaSetCreateError", message)
                self._ctx.event("ReplicaSetCreateError", message, warning=True)
            raise
        self.wrote = True
        if size(created):
            self._ctx.event("ScalingReplicaSet", f"Scaled up replica set {created.name} from 0 to {size(created)}")
        number = created.metadata.annotations[REVISION]
        message = f'Created new replica set "{created.name}"'
        await self.record_progress("True", "NewReplicaSetCreated", message, revision=number)
        return ReplicaSets(created, sets.old)

    async def scale(self, one: ReplicaSet, desired: int, *, annotate: bool = False) -> ReplicaSet:
        """Set the replicas of a ReplicaSet; `annotate` also writes if only its annotations are outdated."""
        current = size(one)
        if desired == current and not annotate:
            return one
        one.spec.replicas = desired
        one.metadata.annotations = replica_annotations(one.metadata.annotations, limits_of(self.deployment))
        updated = await self._update(one)
        if desired != current:
            direction = "up" if desired > current else "down"
            self._ctx.event(
                "ScalingReplicaSet", f"Scaled {direction} replica set {one.name} from {current} to {desired}"
            )
        return updated

    async def delete(self, one: ReplicaSet) -> None:
        """Delete an old ReplicaSet."""
        await self._client.delete(one, missing_ok=True)
        self.wrote = True

    # Internals

    def _new_replica_set(self, sets: ReplicaSets) -> ReplicaSet:
        deployment = self.deployment
        hash_ = template_hash(deployment.spec.template, deployment.status.collision_count)
        template = with_hash_label(deployment.spec.template, hash_)
        selector = deployment.spec.selector
        limits = limits_of(deployment)
        annotations = revision_annotations({}, deployment.metadata.annotations, highest_revision(sets.old) + 1)
        metadata = ObjectMeta(
            name=replica_set_name(deployment.name, hash_),
            namespace=deployment.namespace,
            labels=dict(template.metadata.labels) if template.metadata else {},
            annotations=replica_annotations(annotations, limits),
            owner_references=[owner_reference(deployment)],
        )
        spec = ReplicaSetSpec(
            replicas=new_replicas(limits, 0, sets.old),
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=LabelSelector(
                match_labels={**selector.match_labels, HASH: hash_}, match_expressions=selector.match_expressions
            ),
            template=template,
        )
        return ReplicaSet(metadata=metadata, spec=spec)

    async def _existing(self, desired: ReplicaSet) -> ReplicaSet:
        """Return the existing ReplicaSet of that name if it is the desired one, else increment the collision count."""
        existing = await self._client.get(ReplicaSet, desired.key)
        reference = controller_of(existing)
        owned = reference is not None and reference.uid == self.deployment.uid
        if owned and same_template(self.deployment.spec.template, existing.spec.template):
            return existing
        status = self.deployment.status
        await self.write_status(replace(status, collision_count=(status.collision_count or 0) + 1))
        raise AlreadyExists(
            f'replica set "{desired.name}" belongs to another template', kind="ReplicaSet", key=str(desired.key)
        )

    async def _update(self, one: ReplicaSet) -> ReplicaSet:
        version = one.resource_version
        updated = await self._client.update(one)
        self.wrote = self.wrote or updated.resource_version != version
        return updated
