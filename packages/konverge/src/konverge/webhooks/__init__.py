"""Admission and conversion webhooks: typed functions, a server for them, and certificates that renew themselves.

    hooks = Webhooks(check_image, fill_in, ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, up, down)))
    server = WebhookServer(hooks)

`admission` and `conversion` are what authors write, `endpoints` answers reviews without a socket, `server` with one,
`certificates` and `rotation` look after TLS, `configurations` tells the API server of it all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.client.access.tls import CertificatePair
from konverge.webhooks.admission import (
    AdmissionWebhook,
    MutatingWebhook,
    ValidatingWebhook,
    Verdict,
    mutating,
    validating,
)
from konverge.webhooks.conversion import (
    AnnotationValue,
    ConversionError,
    ConversionWebhook,
    Converter,
    lost_in_conversion,
)
from konverge.webhooks.endpoints import Answer, EndpointStats, Webhooks, WebhooksStats
from konverge.webhooks.requests import AdmissionRequest, Deny, Operation, User

if TYPE_CHECKING:
    from konverge.webhooks.authorities import service_hosts
    from konverge.webhooks.bundles import BundleTarget, inject_bundle
    from konverge.webhooks.certificates import CertificateFiles, CertificateSource, ManagedCertificates, Right, follow
    from konverge.webhooks.configurations import Address, configurations_for, conversion_for
    from konverge.webhooks.rotation import RotationPolicy
    from konverge.webhooks.server import ServerLimits, ServerStats, WebhookServer

_LATER = {
    "konverge.webhooks.authorities": ("service_hosts",),
    "konverge.webhooks.bundles": ("BundleTarget", "inject_bundle"),
    "konverge.webhooks.certificates": (
        "CertificateFiles",
        "CertificateSource",
        "ManagedCertificates",
        "Right",
        "follow",
    ),
    "konverge.webhooks.configurations": ("Address", "configurations_for", "conversion_for"),
    "konverge.webhooks.rotation": ("RotationPolicy",),
    "konverge.webhooks.server": ("ServerLimits", "ServerStats", "WebhookServer"),
}
_HOME = {name: home for home, names in _LATER.items() for name in names}

__all__ = [
    "Address",
    "AdmissionRequest",
    "AdmissionWebhook",
    "AnnotationValue",
    "Answer",
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
    "Right",
    "RotationPolicy",
    "ServerLimits",
    "ServerStats",
    "User",
    "ValidatingWebhook",
    "Verdict",
    "WebhookServer",
    "Webhooks",
    "WebhooksStats",
    "configurations_for",
    "conversion_for",
    "follow",
    "inject_bundle",
    "lost_in_conversion",
    "mutating",
    "service_hosts",
    "validating",
]


def __getattr__(name: str) -> Any:
    # The HTTP library, cryptography and generated kinds are loaded with the first name that needs them.
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'konverge.webhooks' has no attribute {name!r}")
    return getattr(import_module(home), name)
