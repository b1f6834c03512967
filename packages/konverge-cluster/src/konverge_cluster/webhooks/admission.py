"""The admission plug-in: first the webhooks that may change a write, one by one, then those that may refuse it.

Rules that hold here:

1. Mutating webhooks are called in the order of their configurations' names, then as listed. Each sees what the ones
   before it made of the object.
2. When a later one changed the object, an earlier one with reinvocation policy IfNeeded is called once more. There is
   no third round, and nobody is called for the first time in the second.
3. Validating webhooks are called all at the same time. Whoever refuses first is heard.
4. Nothing is locked while a webhook is called. The writer looks again whether the object is still the one it read.
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
        """Whether any webhook is configured that might see this write."""
        storage = self._cluster.storage
        configured = len(storage.collection(MUTATING)) or len(storage.collection(VALIDATING))
        return bool(configured) and not is_exempt(request)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let webhooks change the object.

        Raises: StatusError.
        """
        webhooks = webhooks_of(self._cluster, MUTATING)
        if not webhooks:
            return
        rounds = _Rounds()
        subject = VersionedAttributes(request, now=self._cluster.now())
        await self._mutate_once(webhooks, request, subject, rounds)
        if rounds.changed:
            rounds.second = True
            await self._mutate_once(webhooks, request, subject, rounds)
        await subject.update_request()

    async def validate(self, request: AdmissionRequest) -> None:
        """Let webhooks refuse the object.

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
        refusals_heard: list[StatusError] = []
        async with asyncio.TaskGroup() as group:
            for invocation in invocations:
                subject = states[invocation.strategy]
                group.create_task(self._hear(invocation, request, subject, refusals_heard))
        if refusals_heard:
            raise refusals_heard[0]

    async def _hear(
        self, invocation: Invocation, request: AdmissionRequest, subject: VersionedAttributes, heard: list[StatusError]
    ) -> None:
        """Call a validating webhook and note its refusal: the others are to finish."""
        try:
            await self._call_webhook(invocation, request, subject, mutating=False)
        except CallingWebhookError as failure:
            if not invocation.webhook.ignores_failure:
                heard.append(failure.status_error())
        except StatusError as refusal:
            heard.append(refusal)

    async def _mutate_once(
        self, webhooks: list[Webhook], request: AdmissionRequest, subject: VersionedAttributes, rounds: _Rounds
    ) -> None:
        for webhook in webhooks:
            invocation = match(self._cluster, webhook, request, subject.new) if rounds.calls(webhook) else None
            if invocation is None:
                continue
            await subject.convert_to(invocation.strategy)
            if not self._conditions_hold(invocation, request, subject):
                continue
            try:
                changed = await self._change(invocation, request, subject)
            except CallingWebhookError as failure:
                if not webhook.ignores_failure:
                    raise failure.status_error() from failure
                changed = False
            rounds.note(webhook, changed=changed)

    async def _change(self, invocation: Invocation, request: AdmissionRequest, subject: VersionedAttributes) -> bool:
        """Call a mutating webhook and apply its patch; return whether it changed anything."""
        name = invocation.webhook.name
        verdict = await self._call_webhook(invocation, request, subject, mutating=True)
        try:
            operations = verdict.operations()
        except InvalidReview as fault:
            raise CallingWebhookError(name, str(fault)) from fault
        if not operations:
            return False
        if subject.new is None:
            text = f"admission webhook {quote(name)} attempted to modify the object, which is not supported"
            raise status_errors.internal_error(f"{text} for this operation")
        if verdict.patch_type != "JSONPatch":
            raise CallingWebhookError(name, f"unsupported patch type {quote(verdict.patch_type)}")
        before = subject.new
        subject.new = _patched(invocation.strategy, before, operations)
        return subject.new != before

    async def _call_webhook(
        self, invocation: Invocation, request: AdmissionRequest, subject: VersionedAttributes, *, mutating: bool
    ) -> AdmissionResponse:
        return await call_webhook(
            self._webhook_client,
            invocation,
            request,
            (subject.new, subject.old),
            uid=self._cluster.new_uid(),
            mutating=mutating,
        )

    def _conditions_hold(self, invocation: Invocation, request: AdmissionRequest, subject: VersionedAttributes) -> bool:
        if not invocation.webhook.conditions:
            return True
        states = (subject.new, subject.old)
        described = request_of(invocation, request, states)
        variables = {"object": subject.new, "oldObject": subject.old, "request": described}
        return match_conditions_hold(invocation.webhook, variables, request)


class _Rounds:
    """Who has been called, and who is to be called again because the object changed afterwards."""

    def __init__(self) -> None:
        self.second = False
        self.changed = False
        self._called: set[str] = set()
        self._again: set[str] = set()

    def calls(self, webhook: Webhook) -> bool:
        """Whether a webhook is called in this round."""
        return not self.second or webhook.uid in self._again

    def note(self, webhook: Webhook, *, changed: bool) -> None:
        if changed:
            self.changed = True
            self._again |= self._called
            self._called.clear()
        if webhook.reinvoke_if_needed:
            self._called.add(webhook.uid)


def _patched(strategy: Strategy, document: Document, operations: list[object]) -> Document:
    """Apply the patch of a webhook and bring the result into the kind's shape.

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
    except StatusError as refusal:
        raise status_errors.internal_error(str(refusal).partition(": ")[2]) from None
