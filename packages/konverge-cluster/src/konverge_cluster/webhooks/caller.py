"""One call of one webhook: from the write to the verdict."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document
from konverge_cluster.webhook_client import WebhookCallError, WebhookClient
from konverge_cluster.webhooks.matching import Invocation
from konverge_cluster.webhooks.reviews import (
    AdmissionResponse,
    InvalidReview,
    read_response,
    request_of,
    review_of,
    review_version,
)

__all__ = ["CallingWebhookError", "call_webhook"]

_STATUS_FIELDS: Final = ("message", "reason", "details")
_HARMLESS: Final = ("None", "NoneOnDryRun")


class CallingWebhookError(Exception):
    """A webhook could not be called or gave no usable answer; whether that matters is up to its failure policy."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"failed calling webhook {quote(name)}: {why}")

    def status_error(self) -> StatusError:
        """What the writer is told when it does matter."""
        return status_errors.internal_error(str(self))


async def call_webhook(
    webhook_client: WebhookClient,
    invocation: Invocation,
    request: AdmissionRequest,
    states: tuple[Document | None, Document | None],
    *,
    uid: str,
    mutating: bool,
) -> AdmissionResponse:
    """Call a webhook with the new and the old object in its version; its warnings are added to the request's.

    Raises: CallFailed; StatusError when the webhook says no, or when a rehearsal would have real effects.
    """
    webhook = invocation.webhook
    if request.dry_run and webhook.side_effects not in _HARMLESS:
        raise status_errors.bad_request(f"admission webhook {quote(webhook.name)} does not support dry run")
    version = review_version(webhook.versions)
    if version is None:
        text = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise CallingWebhookError(webhook.name, f"could not create admission objects: {text}")
    review = review_of(version, uid, request_of(invocation, request, states))
    try:
        answer = await webhook_client.post(webhook.target, review, timeout=webhook.timeout)
        verdict = read_response(answer, version, uid, mutating=mutating)
    except WebhookCallError as failure:
        stage = "could not get REST client" if failure.no_client else "failed to call webhook"
        raise CallingWebhookError(webhook.name, f"{stage}: {failure}") from failure
    except InvalidReview as fault:
        raise CallingWebhookError(webhook.name, str(fault)) from fault
    request.warnings.extend(verdict.warnings)
    if not verdict.allowed:
        raise _denied(webhook.name, verdict.status or {})
    return verdict


def _denied(name: str, status: dict[str, Any]) -> StatusError:
    """The answer of a webhook that says no, made fit to be the server's own."""
    shown: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": status.get("metadata") or {}}
    given = status.get("status") or ""
    shown["status"] = given if given not in ("", "Success") else "Failure"
    shown.update({field: status[field] for field in _STATUS_FIELDS if status.get(field)})
    why = status.get("message") or status.get("reason")
    said = f": {why}" if why else " without explanation"
    shown["message"] = f"admission webhook {quote(name)} denied the request{said}"
    shown["code"] = max(400, status.get("code") or 0)
    return StatusError(shown)
