"""One call of one admission webhook: from the write to the AdmissionResponse."""

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
_DRY_RUN_SAFE: Final = ("None", "NoneOnDryRun")


class CallingWebhookError(Exception):
    """A webhook could not be called or returned no usable response; its failure policy decides whether that matters."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"failed calling webhook {quote(name)}: {detail}")

    def status_error(self) -> StatusError:
        """Return the error for the client when the failure policy is Fail."""
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
    """Call a webhook with the new and the old object in its version; add its warnings to those of the request.

    Raises: CallingWebhookError; StatusError when the webhook denies the request, or has side effects on a dry run.
    """
    webhook = invocation.webhook
    if request.dry_run and webhook.side_effects not in _DRY_RUN_SAFE:
        raise status_errors.bad_request(f"admission webhook {quote(webhook.name)} does not support dry run")
    version = review_version(webhook.versions)
    if version is None:
        text = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise CallingWebhookError(webhook.name, f"could not create admission objects: {text}")
    review = review_of(version, uid, request_of(invocation, request, states))
    try:
        review_response = await webhook_client.post(webhook.target, review, timeout=webhook.timeout)
        response = read_response(review_response, version, uid, mutating=mutating)
    except WebhookCallError as failure:
        stage = "could not get REST client" if failure.no_client else "failed to call webhook"
        raise CallingWebhookError(webhook.name, f"{stage}: {failure}") from failure
    except InvalidReview as error:
        raise CallingWebhookError(webhook.name, str(error)) from error
    request.warnings.extend(response.warnings)
    if not response.allowed:
        raise _denied_error(webhook.name, response.status or {})
    return response


def _denied_error(name: str, status: dict[str, Any]) -> StatusError:
    """Return the error for a denied request, made from the webhook's status."""
    status_document: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": status.get("metadata") or {}}
    sent_status = status.get("status") or ""
    status_document["status"] = sent_status if sent_status not in ("", "Success") else "Failure"
    status_document.update({field: status[field] for field in _STATUS_FIELDS if status.get(field)})
    detail = status.get("message") or status.get("reason")
    explanation = f": {detail}" if detail else " without explanation"
    status_document["message"] = f"admission webhook {quote(name)} denied the request{explanation}"
    status_document["code"] = max(400, status.get("code") or 0)
    return StatusError(status_document)
