"""What a Deployment writes: its ReplicaSets, each change with its event, and its own status and revision."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from konverge.errors import AlreadyExists, KonvergeError
from konverge.k8s.apps.v1 import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import ObjectMeta
from konverge.objects.conditions import ConditionStatus
from konverge.reconcile import Context
from konverge_cluster.server_messages import is_namespace_terminating, server_message
from konverge_cluster.status_writes import controller_client, write_status
from konverge_cluster.workloads.deployments.conditions import PROGRESSING, condition_of, new_condition, with_
from konverge_cluster.workloads.deployments.revisions import REVISION, highest_revision, numbered, sized
from konverge_cluster.workloads.deployments.rolling import new_size
from konverge_cluster.workloads.deployments.sizes import limits_of, size
from konverge_cluster.workloads.deployments.status import Sets, has_deadline
from konverge_cluster.workloads.deployments.templates import (
    HASH,
    labelled,
    same_template,
    set_name,
    template_hash,
)
from konverge_cluster.workloads.pods.claims import controller_of, owner_reference

__all__ = ["Control"]


class Control:
    """The hands of one pass over a Deployment; `deployment` is always as it was last written.

    `wrote` says whether anything was written: then the world is another one, and it is to be looked at again.
    """

    def __init__(self, deployment: Deployment, ctx: Context, now: datetime) -> None:
        self.deployment = deployment
        self.now = now
        self.wrote = False
        self._ctx = ctx
        self._client = controller_client(ctx)

    # Its own status

    async def write_status(self, status: DeploymentStatus, *, revision: str = "") -> None:
        """Write the status and the revision, if they are different; annotations go by way of the status, too."""
        annotations = dict(self.deployment.metadata.annotations)
        if revision:
            annotations[REVISION] = revision
        version = self.deployment.resource_version
        self.deployment = await write_status(self._ctx, self.deployment, status, annotations=annotations)
        self.wrote = self.wrote or self.deployment.resource_version != version

    async def note_progress(self, status: ConditionStatus, reason: str, message: str, *, revision: str = "") -> None:
        """Write a condition about the progress, if the rollout has a deadline, and the revision."""
        noted = self.deployment.status
        if has_deadline(self.deployment):
            condition = new_condition(PROGRESSING, status, reason=reason, message=message, now=self.now)
            noted = replace(noted, conditions=with_(noted.conditions, condition))
        await self.write_status(noted, revision=revision)

    # Its ReplicaSets

    async def number(self, sets: Sets) -> Sets:
        """Give the present ReplicaSet its revision and the Deployment's annotations, and the Deployment its number."""
        new, deployment = sets.new, self.deployment
        if new is None:
            return sets
        revision = highest_revision(sets.old) + 1
        annotations = numbered(new.metadata.annotations, deployment.metadata.annotations, revision)
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            new.metadata.annotations = annotations
            new.spec.min_ready_seconds = deployment.spec.min_ready_seconds
            return Sets(await self._update(new), sets.old)
        number = annotations.get(REVISION, "")
        if condition_of(deployment.status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.name}"'
            await self.note_progress("True", "FoundNewReplicaSet", message, revision=number)
        else:
            await self.write_status(deployment.status, revision=number)
        return sets

    async def create(self, sets: Sets) -> Sets:
        """Create the ReplicaSet of the present template.

        Raises: AlreadyExists when its name is taken by another one; the next try is under another name.
            KonvergeError when it is refused, after an event and a condition.
        """
        wanted = self._present(sets)
        try:
            created = await self._client.create(wanted)
        except AlreadyExists:
            return Sets(await self._take(wanted), sets.old)
        except KonvergeError as error:
            if not is_namespace_terminating(error):
                message = f'Failed to create new replica set "{wanted.name}": {server_message(error)}'
                await self.note_progress("False", "ReplicaSetCreateError", message)
                self._ctx.event("ReplicaSetCreateError", message, warning=True)
            raise
        self.wrote = True
        if size(created):
            self._ctx.event("ScalingReplicaSet", f"Scaled up replica set {created.name} from 0 to {size(created)}")
        number = created.metadata.annotations[REVISION]
        message = f'Created new replica set "{created.name}"'
        await self.note_progress("True", "NewReplicaSetCreated", message, revision=number)
        return Sets(created, sets.old)

    async def scale(self, one: ReplicaSet, wanted: int, *, annotate: bool = False) -> ReplicaSet:
        """Make a ReplicaSet ask for another number of pods; `annotate` also when only its annotations are behind."""
        current = size(one)
        if wanted == current and not annotate:
            return one
        one.spec.replicas = wanted
        one.metadata.annotations = sized(one.metadata.annotations, limits_of(self.deployment))
        updated = await self._update(one)
        if wanted != current:
            way = "up" if wanted > current else "down"
            self._ctx.event("ScalingReplicaSet", f"Scaled {way} replica set {one.name} from {current} to {wanted}")
        return updated

    async def delete(self, one: ReplicaSet) -> None:
        """Delete an old ReplicaSet."""
        await self._client.delete(ReplicaSet, one.key, missing_ok=True)
        self.wrote = True

    # How it is done

    def _present(self, sets: Sets) -> ReplicaSet:
        deployment = self.deployment
        hash_ = template_hash(deployment.spec.template, deployment.status.collision_count)
        template = labelled(deployment.spec.template, hash_)
        selector = deployment.spec.selector
        limits = limits_of(deployment)
        annotations = numbered({}, deployment.metadata.annotations, highest_revision(sets.old) + 1)
        metadata = ObjectMeta(
            name=set_name(deployment.name, hash_),
            namespace=deployment.namespace,
            labels=dict(template.metadata.labels) if template.metadata else {},
            annotations=sized(annotations, limits),
            owner_references=[owner_reference(deployment)],
        )
        spec = ReplicaSetSpec(
            replicas=new_size(limits, 0, sets.old),
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=LabelSelector(
                match_labels={**selector.match_labels, HASH: hash_}, match_expressions=selector.match_expressions
            ),
            template=template,
        )
        return ReplicaSet(metadata=metadata, spec=spec)

    async def _take(self, wanted: ReplicaSet) -> ReplicaSet:
        """Take the ReplicaSet that has the name already if it is the one, else count the collision."""
        found = await self._client.get(ReplicaSet, wanted.key)
        reference = controller_of(found)
        ours = reference is not None and reference.uid == self.deployment.uid
        if ours and same_template(self.deployment.spec.template, found.spec.template):
            return found
        status = self.deployment.status
        await self.write_status(replace(status, collision_count=(status.collision_count or 0) + 1))
        raise AlreadyExists(f'replica set "{wanted.name}" is another one', kind="ReplicaSet", key=str(wanted.key))

    async def _update(self, one: ReplicaSet) -> ReplicaSet:
        version = one.resource_version
        updated = await self._client.update(one)
        self.wrote = self.wrote or updated.resource_version != version
        return updated
