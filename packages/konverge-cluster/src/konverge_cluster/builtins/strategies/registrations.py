"""Strategies of webhooks, policies, API services, flow control and priorities."""

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
    """ValidatingWebhookConfigurations."""

    set_defaults = staticmethod(registrations.default_validating_webhooks)
    generation_fields = ("webhooks",)
    unconditional_update = False

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:  # noqa: ARG002
        return validate_webhook_configuration(new)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:  # noqa: ARG002
        return validate_webhook_configuration(new, old)


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """MutatingWebhookConfigurations."""

    set_defaults = staticmethod(registrations.default_mutating_webhooks)


class AdmissionPolicyStrategy(BuiltinStrategy):
    """Admission policies in CEL. They are stored but not enforced."""

    set_defaults = staticmethod(registrations.default_policy)
    generation_fields = ("spec",)
    unconditional_update = False
    status_reset_fields = ("metadata", "spec")


class AdmissionPolicyBindingStrategy(BuiltinStrategy):
    """Bindings of admission policies. They are stored but not enforced."""

    set_defaults = staticmethod(registrations.default_policy_binding)
    generation_fields = ("spec",)
    unconditional_update = False


class APIServiceStrategy(BuiltinStrategy):
    """APIServices. They are stored; requests are not forwarded to aggregated servers."""

    set_defaults = staticmethod(registrations.default_api_service)
    unconditional_update = False


class FlowSchemaStrategy(BuiltinStrategy):
    """FlowSchemas. They are stored and have no effect."""

    set_defaults = staticmethod(registrations.default_flow_schema)
    generation_fields = ("spec",)
    status_reset_fields = ("metadata", "spec")


class PriorityLevelStrategy(BuiltinStrategy):
    """PriorityLevelConfigurations. They are stored and have no effect."""

    set_defaults = staticmethod(registrations.default_priority_level)
    generation_fields = ("spec",)
    status_reset_fields = ("metadata", "spec")


class PriorityClassStrategy(BuiltinStrategy):
    """PriorityClasses. The generation is always 1."""

    set_defaults = staticmethod(registrations.default_priority_class)
    check = staticmethod(access.validate_priority_class)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return access.validate_priority_class_update(new, old)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        new["metadata"]["generation"] = 1


class RuntimeClassStrategy(BuiltinStrategy):
    """RuntimeClasses."""

    create_on_update = True
    unconditional_update = False
    check = staticmethod(access.validate_runtime_class)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return access.validate_runtime_class_update(new, old)
