"""Writes that the server refuses: the account of a new namespace is missing, a quota is used up, a webhook says no."""

from __future__ import annotations

from konverge.errors import Forbidden, KonvergeError
from konverge.reconcile import Result
from konverge_cluster.server_messages import server_message

__all__ = ["retry_refused"]


def retry_refused(error: KonvergeError) -> Result:
    """Return a retry with backoff for a write that the server refused.

    An event and the status of the owner have reported it, and no controller can change it, so it is no error of the
    controller.

    Raises: `error` itself if it is another one.
    """
    if not isinstance(error, Forbidden):
        raise error
    return Result.requeue(reason=server_message(error))
