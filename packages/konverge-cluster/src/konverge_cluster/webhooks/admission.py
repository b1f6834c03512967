"""The admission plug-in for webhooks: first mutating webhooks, one after another, then validating webhooks.

Rules that hold here:

1. Mutating webhooks are called in the order of their configurations' names, then as listed. Each sees the changes of
   the ones before it.
2. When a later webhook changed the object, an earlier one with reinvocation policy IfNeeded is called once more. There
   is no third pass, and the second pass calls no webhook that the first did not call.
3. Validating webhooks are called concurrently. The first rejection is returned.
4. No lock is held while a webhook is called. The writer checks again that the stored object is the one it read.
"""

from __future__ import annotations

import asyncio

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.patches import PatchError, apply_json_patch
from konverge_cluster.webhook_client import WebhookClient
from konverge_cluster.webhooks.caller import CallingWebhookError, call_webhook
from konverge_cluster.webhooks.conditions import match_conditions_hold
from konverge_cluster.webhooks.configurations import MUTATING, VALIDATING, Webhook, webhooks_of
from konverge_cluster.webhooks.matching import Invocation, is_exempt, match
from konverge_cluster.webhooks.reviews import AdmissionResponse, InvalidReview, request_of
from konverge_cluster.webhooks.versions import VersionedAttributes

__all__ = ["WebhookAdmission"]


class WebhookAdmission:
    """Calls the webhooks that are configured in a cluster."""

    def __init__(self, cluster: Cluster, webhook_client: WebhookClient) -> None:
        self._cluster = cluster
        self._webhook_client = webhook_client

    def handles(self, request: AdmissionRequest) -> bool:
        """Report whether any webhook is configured that could apply to this write."""
        storage = self._cluster.storage
        configured = len(storage.collection(MUTATING)) or len(storage.collection(VALIDATING))
        return bool(configured) and not is_exempt(request)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Call the mutating webhooks.

        Raises: StatusError.
        """
        webhooks = webhooks_of(self._cluster, MUTATING)
        if not webhooks:
            return
        reinvocations = _Reinvocations()
        attributes = VersionedAttributes(request, now=self._cluster.now())
        await self._mutate_once(webhooks, request, attributes, reinvocations)
        if reinvocations.changed:
            reinvocations.second = True
            await self._mutate_once(webhooks, request, attributes, reinvocations)
        await attributes.update_request()

    async def validate(self, request: AdmissionRequest) -> None:
        """Call the validating webhooks.

        Raises: StatusError.
        """
        states: dict[Strategy, VersionedAttributes] = {}
        invocations = []
        for webhook in webhooks_of(self._cluster, VALIDATING):
            invocation = match(self._cluster, webhook, request, request.object)
            if invocation is None:
                continue
            if invocation.strategy not in states:
                states[invocation.strategy] = VersionedAttributes(request)
                await states[invocation.strategy].convert_to(invocation.strategy)
            if self._conditions_hold(invocation, request, states[invocation.strategy]):
                invocations.append(invocation)
        errors: list[StatusError] = []
        async with asyncio.TaskGroup() as group:
            for invocation in invocations:
                attributes = states[invocation.strategy]
                group.create_task(self._collect_error(invocation, request, attributes, errors))
        if errors:
            raise errors[0]

    async def _collect_error(
        self,
        invocation: Invocation,
        request: AdmissionRequest,
        attributes: VersionedAttributes,
        errors: list[StatusError],
    ) -> None:
        """Call a validating webhook and append its error, so that the other calls can finish."""
        try:
            await self._call_webhook(invocation, request, attributes, mutating=False)
        except CallingWebhookError as failure:
            if not invocation.webhook.ignores_failure:
                errors.append(failure.status_error())
        except StatusError as error:
            errors.append(error)

    async def _mutate_once(
        self,
        webhooks: list[Webhook],
        request: AdmissionRequest,
        attributes: VersionedAttributes,
        reinvocations: _Reinvocations,
    ) -> None:
        for webhook in webhooks:
            invocation = (
                match(self._cluster, webhook, request, attributes.new) if reinvocations.is_invoked(webhook) else None
            )
            if invocation is None:
                continue
            await attributes.convert_to(invocation.strategy)
            if not self._conditions_hold(invocation, request, attributes):
                continue
            try:
                changed = await self._call_mutating(invocation, request, attributes)
            except CallingWebhookError as failure:
                if not webhook.ignores_failure:
                    raise failure.status_error() from failure
                changed = False
            reinvocations.record(webhook, changed=changed)

    async def _call_mutating(
        self, invocation: Invocation, request: AdmissionRequest, attributes: VersionedAttributes
    ) -> bool:
        """Call a mutating webhook and apply its patch; return whether it changed anything."""
        name = invocation.webhook.name
        response = await self._call_webhook(invocation, request, attributes, mutating=True)
        try:
            operations = response.operations()
        except InvalidReview as error:
            raise CallingWebhookError(name, str(error)) from error
        if not operations:
            return False
        if attributes.new is None:
            text = f"admission webhook {quote(name)} attempted to modify the object, which is not supported"
            raise status_errors.internal_error(f"{text} for this operation")
        if response.patch_type != "JSONPatch":
            raise CallingWebhookError(name, f"unsupported patch type {quote(response.patch_type)}")
        before = attributes.new
        attributes.new = _apply_webhook_patch(invocation.strategy, before, operations)
        return attributes.new != before

    async def _call_webhook(
        self, invocation: Invocation, request: AdmissionRequest, attributes: VersionedAttributes, *, mutating: bool
    ) -> AdmissionResponse:
        return await call_webhook(
            self._webhook_client,
            invocation,
            request,
            (attributes.new, attributes.old),
            uid=self._cluster.new_uid(),
            mutating=mutating,
        )

    def _conditions_hold(
        self, invocation: Invocation, request: AdmissionRequest, attributes: VersionedAttributes
    ) -> bool:
        if not invocation.webhook.conditions:
            return True
        states = (attributes.new, attributes.old)
        admission_request = request_of(invocation, request, states)
        variables = {"object": attributes.new, "oldObject": attributes.old, "request": admission_request}
        return match_conditions_hold(invocation.webhook, variables, request)


class _Reinvocations:
    """The mutating webhooks that have been called, and those to reinvoke because the object changed afterwards."""

    def __init__(self) -> None:
        self.second = False
        self.changed = False
        self._invoked: set[str] = set()
        self._to_reinvoke: set[str] = set()

    def is_invoked(self, webhook: Webhook) -> bool:
        """Report whether a webhook is called in this pass."""
        return not self.second or webhook.uid in self._to_reinvoke

    def record(self, webhook: Webhook, *, changed: bool) -> None:
        if changed:
            self.changed = True
            self._to_reinvoke |= self._invoked
            self._invoked.clear()
        if webhook.reinvoke_if_needed:
            self._invoked.add(webhook.uid)


def _apply_webhook_patch(strategy: Strategy, document: Document, operations: list[object]) -> Document:
    """Apply the patch of a webhook and decode the result as its kind.

    Raises: StatusError 500.
    """
    try:
        patched = apply_json_patch(document, operations)
    except PatchError as error:
        raise status_errors.internal_error(str(error.__cause__ or error)) from None
    if not isinstance(patched, dict) or patched.get("kind") != document["kind"]:
        raise status_errors.internal_error("the patched object is of another kind")
    if document["kind"] != strategy.info.kind.kind:
        return patched
    try:
        return decode_and_default(strategy, patched)[0]
    except StatusError as error:
        raise status_errors.internal_error(str(error).partition(": ")[2]) from None
