"""What is registered with the API server: webhooks, policies, API services, flow control, priorities."""

from __future__ import annotations

from collections.abc import Iterable

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.defaults import registrations
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import access
from konverge_cluster.builtins.validation.webhook_configurations import validate_webhook_configuration

__all__ = [
    "APIServiceStrategy",
    "AdmissionPolicyBindingStrategy",
    "AdmissionPolicyStrategy",
    "FlowSchemaStrategy",
    "MutatingWebhookStrategy",
    "PriorityClassStrategy",
    "PriorityLevelStrategy",
    "RuntimeClassStrategy",
    "ValidatingWebhookStrategy",
]


class ValidatingWebhookStrategy(BuiltinStrategy):
    """Webhooks that may refuse."""

    set_defaults = staticmethod(registrations.default_validating_webhooks)
    generation_fields = ("webhooks",)
    unconditional_update = False

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:  # noqa: ARG002
        return validate_webhook_configuration(new)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:  # noqa: ARG002
        return validate_webhook_configuration(new, old)


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """Webhooks that may change."""

    set_defaults = staticmethod(registrations.default_mutating_webhooks)


class AdmissionPolicyStrategy(BuiltinStrategy):
    """Rules in CEL; stored and shown, not carried out."""

    set_defaults = staticmethod(registrations.default_policy)
    generation_fields = ("spec",)
    unconditional_update = False
    status_reset_fields = ("metadata", "spec")


class AdmissionPolicyBindingStrategy(BuiltinStrategy):
    """Where such rules hold; stored and shown, not carried out."""

    set_defaults = staticmethod(registrations.default_policy_binding)
    generation_fields = ("spec",)
    unconditional_update = False


class APIServiceStrategy(BuiltinStrategy):
    """Another server behind this one; stored and shown, not asked."""

    set_defaults = staticmethod(registrations.default_api_service)
    unconditional_update = False


class FlowSchemaStrategy(BuiltinStrategy):
    """Which requests belong together; stored and shown, without effect."""

    set_defaults = staticmethod(registrations.default_flow_schema)
    generation_fields = ("spec",)
    status_reset_fields = ("metadata", "spec")


class PriorityLevelStrategy(BuiltinStrategy):
    """How many requests run at the same time; stored and shown, without effect."""

    set_defaults = staticmethod(registrations.default_priority_level)
    generation_fields = ("spec",)
    status_reset_fields = ("metadata", "spec")


class PriorityClassStrategy(BuiltinStrategy):
    """How important pods are. Its generation is one, for ever."""

    set_defaults = staticmethod(registrations.default_priority_class)
    check = staticmethod(access.validate_priority_class)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return access.validate_priority_class_update(new, old)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        new["metadata"]["generation"] = 1


class RuntimeClassStrategy(BuiltinStrategy):
    """What runs the containers."""

    create_on_update = True
    unconditional_update = False
    check = staticmethod(access.validate_runtime_class)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return access.validate_runtime_class_update(new, old)
