"""Generate webhook configurations from the webhooks, so that nothing is declared twice.

They are complete except for the caBundle, which `ManagedCertificates` injects while the operator runs.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from konverge.k8s.admissionregistration import v1
from konverge.k8s.meta.v1 import LabelSelector, LabelSelectorRequirement
from konverge.objects import ObjectMeta, from_wire, kind_of
from konverge.schema import WebhookConversion
from konverge.webhooks.admission import AdmissionWebhook, MutatingWebhook, ValidatingWebhook
from konverge.webhooks.conversion import ConversionWebhook

__all__ = ["Address", "configurations_for", "conversion_for"]

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""A label that the API server itself sets on every namespace, so it is never missing."""

SYSTEM: Final = "kube-system"


@dataclass(frozen=True)
class Address:
    """The address of the webhooks for the API server: a Service of the cluster, or a URL (for development).

    `ca_bundle` is PEM; without it the API server uses the trust roots of its machine, until a bundle is injected.

    Raises: ValueError unless exactly one of the two is set.
    """

    service: str = ""
    namespace: str = ""
    port: int = 443
    url: str = ""
    ca_bundle: bytes = b""

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.service) or bool(self.service) != bool(self.namespace):
            raise ValueError("an Address needs either a url, or a service and its namespace")
        if self.url and not self.url.startswith("https://"):
            raise ValueError(f"{self.url!r} is not an address for webhooks: write https://host:port")

    def config(self, path: str) -> v1.WebhookClientConfig:
        """Return the clientConfig of the webhook at a path."""
        bundle = self.ca_bundle or None
        if self.url:
            return v1.WebhookClientConfig(url=self.url.rstrip("/") + path, ca_bundle=bundle)
        service = v1.ServiceReference(name=self.service, namespace=self.namespace, path=path, port=self.port)
        return v1.WebhookClientConfig(service=service, ca_bundle=bundle)


def configurations_for(
    hooks: Iterable[AdmissionWebhook[Any] | ConversionWebhook],
    address: Address,
    *,
    name: str,
    exclude: Sequence[str] = (),
    only: Sequence[str] = (),
) -> list[v1.MutatingWebhookConfiguration | v1.ValidatingWebhookConfiguration]:
    """Return the configurations of these webhooks, with the name `name`: mutating, validating, or both.

    They exclude objects in kube-system, in the namespace of the Service and in those of `exclude`: a webhook that is
    down must never keep the cluster, or its own pods, from starting. With `only`, they select no other namespaces; a
    cluster-scoped object has none, and is always selected.
    """
    namespaces: list[str] = [SYSTEM, *([address.namespace] if address.namespace else []), *exclude]
    selector = _namespace_selector(list(dict.fromkeys(namespaces)), list(only))
    admission = [hook for hook in hooks if isinstance(hook, AdmissionWebhook)]
    mutating = [_mutating(hook, address, selector) for hook in admission if isinstance(hook, MutatingWebhook)]
    validating = [_validating(hook, address, selector) for hook in admission if isinstance(hook, ValidatingWebhook)]
    result: list[v1.MutatingWebhookConfiguration | v1.ValidatingWebhookConfiguration] = []
    if mutating:
        result.append(v1.MutatingWebhookConfiguration(metadata=ObjectMeta(name=name), webhooks=mutating))
    if validating:
        result.append(v1.ValidatingWebhookConfiguration(metadata=ObjectMeta(name=name), webhooks=validating))
    return result


def conversion_for(hook: ConversionWebhook, address: Address) -> WebhookConversion:
    """Return the conversion of a CRD, for `crd_for(..., conversion=...)`."""
    config = address.config(hook.path)
    if config.service is None:
        return WebhookConversion(url=config.url or "", ca_bundle=_text(address.ca_bundle))
    return WebhookConversion(
        service_name=address.service,
        service_namespace=address.namespace,
        path=hook.path,
        port=address.port,
        ca_bundle=_text(address.ca_bundle),
    )


def _mutating(hook: MutatingWebhook[Any], address: Address, selector: LabelSelector) -> v1.MutatingWebhook:
    policy = "IfNeeded" if hook.reinvoke else "Never"
    return v1.MutatingWebhook(**_shared(hook, address, selector), reinvocation_policy=policy)


def _validating(hook: ValidatingWebhook[Any], address: Address, selector: LabelSelector) -> v1.ValidatingWebhook:
    return v1.ValidatingWebhook(**_shared(hook, address, selector))


def _shared(hook: AdmissionWebhook[Any], address: Address, selector: LabelSelector) -> dict[str, Any]:
    conditions = [v1.MatchCondition(name=name, expression=each) for name, each in hook.match_conditions.items()]
    shared: dict[str, Any] = {
        "name": hook.full_name,
        "admission_review_versions": ["v1"],
        "client_config": address.config(hook.path),
        "rules": [_rule(hook)],
        "failure_policy": hook.failure_policy,
        "match_policy": "Equivalent",
        "match_conditions": conditions,
        "namespace_selector": selector,
        "side_effects": "NoneOnDryRun" if hook.side_effects else "None",
        "timeout_seconds": hook.timeout,
    }
    if hook.objects is not None:
        shared["object_selector"] = from_wire(LabelSelector, hook.objects.to_spec())
    return shared


def _namespace_selector(excluded: list[str], only: list[str]) -> LabelSelector:
    requirements = [LabelSelectorRequirement(key=NAMESPACE_LABEL, operator="NotIn", values=excluded)]
    if only:
        requirements.append(LabelSelectorRequirement(key=NAMESPACE_LABEL, operator="In", values=only))
    return LabelSelector(match_expressions=requirements)


def _rule(hook: AdmissionWebhook[Any]) -> v1.RuleWithOperations:
    kind = kind_of(hook.kind)
    return v1.RuleWithOperations(
        api_groups=[kind.group],
        api_versions=[kind.version],
        resources=list(hook.resources),
        operations=list(hook.operations),
        scope=kind.scope.value,
    )


def _text(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
