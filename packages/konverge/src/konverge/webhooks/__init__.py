"""Admission and conversion webhooks: typed functions, a server for them, and managed certificates.

    hooks = Webhooks(check_image, fill_in, ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, up, down)))
    server = WebhookServer(hooks)

Authors use `admission` and `conversion`. `endpoints` handles reviews without a socket, `server` with one,
`certificates` and `rotation` manage TLS, `configurations` generates the configurations for the API server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.client.access.tls import CertificatePair
from konverge.webhooks.admission import (
    AdmissionWebhook,
    MutatingWebhook,
    ValidatingWebhook,
    ValidationResult,
    mutating,
    validating,
)
from konverge.webhooks.conversion import (
    AnnotationValue,
    ConversionError,
    ConversionWebhook,
    Converter,
    round_trip_changes,
)
from konverge.webhooks.endpoints import EndpointStats, WebhookResponse, Webhooks, WebhooksStats
from konverge.webhooks.requests import AdmissionRequest, Deny, Operation, User

if TYPE_CHECKING:
    from konverge.webhooks.authorities import service_hosts
    from konverge.webhooks.bundles import BundleTarget, inject_bundle
    from konverge.webhooks.certificates import (
        CertificateFiles,
        CertificateSource,
        ManagedCertificates,
        RequiredPermission,
        reload_certificates,
    )
    from konverge.webhooks.configurations import Address, configurations_for, conversion_for
    from konverge.webhooks.limits import ServerLimits
    from konverge.webhooks.rotation import RotationPolicy
    from konverge.webhooks.server import ServerStats, WebhookServer

_LAZY = {
    "konverge.webhooks.authorities": ("service_hosts",),
    "konverge.webhooks.bundles": ("BundleTarget", "inject_bundle"),
    "konverge.webhooks.certificates": (
        "CertificateFiles",
        "CertificateSource",
        "ManagedCertificates",
        "RequiredPermission",
        "reload_certificates",
    ),
    "konverge.webhooks.configurations": ("Address", "configurations_for", "conversion_for"),
    "konverge.webhooks.rotation": ("RotationPolicy",),
    "konverge.webhooks.limits": ("ServerLimits",),
    "konverge.webhooks.server": ("ServerStats", "WebhookServer"),
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "Address",
    "AdmissionRequest",
    "AdmissionWebhook",
    "AnnotationValue",
    "BundleTarget",
    "CertificateFiles",
    "CertificatePair",
    "CertificateSource",
    "ConversionError",
    "ConversionWebhook",
    "Converter",
    "Deny",
    "EndpointStats",
    "ManagedCertificates",
    "MutatingWebhook",
    "Operation",
    "RequiredPermission",
    "RotationPolicy",
    "ServerLimits",
    "ServerStats",
    "User",
    "ValidatingWebhook",
    "ValidationResult",
    "WebhookResponse",
    "WebhookServer",
    "Webhooks",
    "WebhooksStats",
    "configurations_for",
    "conversion_for",
    "inject_bundle",
    "mutating",
    "reload_certificates",
    "round_trip_changes",
    "service_hosts",
    "validating",
]


def __getattr__(name: str) -> Any:
    # The HTTP library, cryptography and generated kinds are imported with the first name that needs them.
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'konverge.webhooks' has no attribute {name!r}")
    return getattr(import_module(module), name)
