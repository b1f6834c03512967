"""The webhooks of a cluster, read from the stored webhook configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from konverge.objects.labels import LabelSelector
from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.storage import Entry
from konverge_cluster.webhook_client.targets import Target

__all__ = ["MUTATING", "VALIDATING", "Rule", "Webhook", "webhooks_of"]

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = (GROUP, "mutatingwebhookconfigurations")
VALIDATING: Final = (GROUP, "validatingwebhookconfigurations")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a webhook; `*` means all, and a resource may be `pods`, `pods/status`, `pods/*` or `*/*`."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str = "*"

    @classmethod
    def read(cls, rule: Mapping[str, Any]) -> Rule:
        return cls(
            operations=tuple(rule.get("operations") or ()),
            groups=tuple(rule.get("apiGroups") or ()),
            versions=tuple(rule.get("apiVersions") or ()),
            resources=tuple(rule.get("resources") or ()),
            scope=rule.get("scope") or "*",
        )


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook as stored in its configuration, with defaults. `uid` is unique in the cluster."""

    uid: str
    name: str
    target: Target
    rules: tuple[Rule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: tuple[tuple[str, str], ...]
    versions: tuple[str, ...]
    side_effects: str
    timeout: float
    equivalent: bool
    ignores_failure: bool
    reinvoke_if_needed: bool

    @classmethod
    def read(cls, uid: str, document: Mapping[str, Any]) -> Webhook:
        return cls(
            uid=uid,
            name=document["name"],
            target=Target.read(document["clientConfig"]),
            rules=tuple(Rule.read(rule) for rule in document.get("rules") or ()),
            namespaces=LabelSelector.from_spec(document["namespaceSelector"]),
            objects=LabelSelector.from_spec(document["objectSelector"]),
            conditions=tuple((each["name"], each["expression"]) for each in document.get("matchConditions") or ()),
            versions=tuple(document.get("admissionReviewVersions") or ()),
            side_effects=document.get("sideEffects") or "",
            timeout=float(document["timeoutSeconds"]),
            equivalent=document["matchPolicy"] == "Equivalent",
            ignores_failure=document["failurePolicy"] == "Ignore",
            reinvoke_if_needed=document.get("reinvocationPolicy") == "IfNeeded",
        )


def webhooks_of(cluster: Cluster, collection: tuple[str, str]) -> list[Webhook]:
    """Return all webhooks in calling order: by the name of their configuration, then as listed."""
    found: list[Webhook] = []
    for entry in cluster.storage.collection(collection).entries():
        found.extend(_webhooks(entry))
    return found


def _webhooks(entry: Entry) -> tuple[Webhook, ...]:
    cached: tuple[Webhook, ...] | None = entry.cache.get(Webhook)
    if cached is None:
        listed = decode(entry.raw).get("webhooks") or []
        cached = tuple(Webhook.read(f"{entry.key}/{index}", each) for index, each in enumerate(listed))
        entry.cache[Webhook] = cached
    return cached
