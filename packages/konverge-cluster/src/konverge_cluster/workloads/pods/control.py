"""Creation and deletion of the pods of one owner, with events."""

from __future__ import annotations

from konverge.errors import ApiError, KonvergeError, NotFound
from konverge.k8s.core.v1 import Pod
from konverge.reconcile import Context
from konverge_cluster.server_messages import is_namespace_terminating, server_message
from konverge_cluster.status_writes import controller_client

__all__ = ["PodControl"]


class PodControl:
    """Creates and deletes pods, and records events about the owner: the object that is reconciled."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._client = controller_client(ctx)

    async def create(self, pod: Pod) -> Pod | None:
        """Create a pod; return None if its namespace is being deleted, since a retry cannot help.

        Raises: KonvergeError when the request fails, after an event.
        """
        try:
            created = await self._client.create(pod)
        except KonvergeError as error:
            if is_namespace_terminating(error):
                return None
            self._ctx.event("FailedCreate", f"Error creating: {server_message(error)}", warning=True)
            raise
        self._ctx.event("SuccessfulCreate", f"Created pod: {created.name}")
        return created

    async def delete(self, pod: Pod) -> Pod:
        """Delete a pod; one that is already gone counts as deleted, without an event.

        Raises: KonvergeError when the request fails, after an event.
        """
        try:
            await self._client.delete(pod)
        except NotFound:
            return pod
        except ApiError as error:
            self._ctx.event("FailedDelete", f"Error deleting: {server_message(error)}", warning=True)
            raise
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.name}")
        return pod
