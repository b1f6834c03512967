"""The reads and writes of revisions: adopts orphans, creates or renumbers the update revision, removes old ones."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.errors import AlreadyExists
from konverge.k8s.apps.v1 import ControllerRevision, StatefulSet
from konverge.objects import LabelSelector
from konverge.reconcile import Context
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.claims import controller_of
from konverge_cluster.workloads.pods.controller_refs import adopt_objects
from konverge_cluster.workloads.pods.facts import is_being_deleted
from konverge_cluster.workloads.stateful_sets.revisions import (
    Revisions,
    by_number,
    current_revision,
    equal_revision,
    new_revision,
    next_number,
    revision_data,
)

__all__ = ["History"]


class History:
    """The revisions of a StatefulSet, in the order of their numbers; `load` reads them."""

    def __init__(self, stateful_set: StatefulSet, ctx: Context) -> None:
        self._stateful_set = stateful_set
        self._ctx = ctx
        self._client = controller_client(ctx)
        self.revisions: list[ControllerRevision] = []

    async def load(self) -> None:
        """Read the revisions that the selector matches, and adopt those without a controller.

        A StatefulSet that is being deleted adopts nothing.

        Raises: Conflict when there are orphans and the live StatefulSet is gone or being deleted.
        """
        selector = LabelSelector.from_spec(self._stateful_set.spec.selector)
        found = await self._ctx.list(ControllerRevision, labels=str(selector))
        owned, orphans = [], []
        for revision in found:
            reference = controller_of(revision)
            if reference is None:
                orphans.append(revision)
            elif reference.uid == self._stateful_set.uid:
                owned.append(revision)
        if not is_being_deleted(self._stateful_set):
            owned += await adopt_objects(self._stateful_set, orphans, kind=ControllerRevision, ctx=self._ctx)
        self.revisions = by_number(owned)

    def last_revisions(self) -> Revisions:
        """Return the current and the update revision of a StatefulSet that is being deleted; nothing is written.

        The update revision may be deleted already.
        """
        collisions = self._stateful_set.status.collision_count or 0
        update = equal_revision(self.revisions, revision_data(self._stateful_set.spec.template))
        if update is None:
            update = new_revision(self._stateful_set, next_number(self.revisions), collisions)
        return Revisions(current_revision(self._stateful_set, self.revisions, update), update, collisions)

    async def sync_revisions(self) -> Revisions:
        """Return the current and the update revision; a template without a revision gets one.

        A template that had an earlier revision gets it back with the next number.
        """
        number = next_number(self.revisions)
        data = revision_data(self._stateful_set.spec.template)
        collisions = self._stateful_set.status.collision_count or 0
        update = equal_revision(self.revisions, data)
        if update is None:
            update, collisions = await self._create(number, collisions)
            self.revisions.append(update)
        elif update is not self.revisions[-1]:
            update.revision = number
            update = await self._client.update(update)
            self.revisions = by_number([one for one in self.revisions if one.uid != update.uid] + [update])
        return Revisions(current_revision(self._stateful_set, self.revisions, update), update, collisions)

    async def delete(self, revisions: Iterable[ControllerRevision]) -> None:
        """Delete revisions."""
        for revision in revisions:
            await self._client.delete(revision, missing_ok=True)

    async def _create(self, number: int, collisions: int) -> tuple[ControllerRevision, int]:
        """Create a revision; a name that is taken by other data is a collision, and leads to another name."""
        while True:
            desired = new_revision(self._stateful_set, number, collisions)
            try:
                return await self._client.create(desired), collisions
            except AlreadyExists:
                existing = await self._client.get(ControllerRevision, desired.key)
                if existing.data == desired.data:
                    return existing, collisions
                collisions += 1
