"""The NetworkPolicy of an operator: who may connect to its pods.

A policy selects clients by labels of pods and namespaces, or by addresses. The API server is no pod, so webhooks stay
open unless its addresses are given. Clients of metrics are the namespaces with the label `metrics: enabled`, as in the
projects of kubebuilder. Probes stay open. Everything else is closed; nothing is said about connections from the pods.
"""

from __future__ import annotations

from typing import Any

from konverge.cli.manifests.release import Release
from konverge.cli.manifests.workload import METRICS_PORT, PROBE_PORT, WEBHOOK_PORT
from konverge.objects import Unstructured

__all__ = ["network_policy"]


def network_policy(release: Release) -> Unstructured:
    """Return the NetworkPolicy of the operator's pods."""
    monitoring = {"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}
    rules = [_rule(PROBE_PORT), _rule(METRICS_PORT, monitoring)]
    if release.operator.webhooks:
        rules.append(_rule(WEBHOOK_PORT, *({"ipBlock": {"cidr": cidr}} for cidr in release.apiserver_cidrs)))
    return release.new_object(
        "NetworkPolicy",
        release.name,
        api="networking.k8s.io/v1",
        spec={"podSelector": {"matchLabels": release.selector}, "policyTypes": ["Ingress"], "ingress": rules},
    )


def _rule(port: int, *clients: dict[str, Any]) -> dict[str, Any]:
    """Return a rule that opens a port for these clients; without clients, for all."""
    rule: dict[str, Any] = {"ports": [{"protocol": "TCP", "port": port}]}
    return {**rule, "from": list(clients)} if clients else rule
