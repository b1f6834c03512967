"""The monitoring of an operator: a ServiceMonitor, its alert rules and dashboards, and a route for its alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from konverge.cli.manifests.release import Release
from konverge.objects import AnyObject, Unstructured
from konverge.schema import to_yaml

__all__ = ["monitoring_files"]


_TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def monitoring_files(release: Release) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files to install, and samples to edit first, by name."""
    objects: dict[str, list[AnyObject]] = {"servicemonitor.yaml": [_monitor_of(release)]}
    rules = [path for path in release.operator.monitoring if path.suffix != ".json"]
    for path in rules:
        documents = yaml.safe_load_all(_text_of(release, path))
        objects[f"alerts-{path.stem}.yaml"] = [_placed(release, one) for one in documents]
    for path in release.operator.monitoring:
        if path.suffix == ".json":
            objects[f"dashboard-{path.stem}.yaml"] = [_dashboard_of(release, path)]
    samples = {"alertmanagerconfig-sample.yaml": to_yaml(_routing_of(release))} if rules else {}
    return {name: to_yaml(*found) for name, found in objects.items()}, samples


def _monitor_of(release: Release) -> AnyObject:
    endpoint: dict[str, Any] = {"port": "metrics", "path": "/metrics", "interval": "30s"}
    if not release.insecure_metrics:
        # Prometheus sends its own token, which its account must be allowed to read metrics with. The certificate is
        # self-signed, and made by each pod: nothing could verify it.
        endpoint |= {"scheme": "https", "bearerTokenFile": _TOKEN_FILE, "tlsConfig": {"insecureSkipVerify": True}}
    return release.new_object(
        "ServiceMonitor",
        release.name,
        api="monitoring.coreos.com/v1",
        spec={"selector": {"matchLabels": release.selector}, "endpoints": [endpoint]},
    )


def _text_of(release: Release, path: Path) -> str:
    """Return a file of the operator, with the lease of this installation."""
    return path.read_text().replace(f'lease="{release.operator.name}"', f'lease="{release.name}"')


def _name_of(release: Release, name: str) -> str:
    return name if release.name == release.operator.name else f"{release.name}-{name}"


def _placed(release: Release, document: dict[str, Any]) -> Unstructured:
    """Return an object in the namespace of the release, with its labels."""
    found = Unstructured(document)
    found.metadata["name"] = _name_of(release, found.name)
    found.metadata["namespace"] = release.namespace
    found.metadata["labels"] = {**found.metadata.get("labels", {}), **release.labels}
    return found


def _dashboard_of(release: Release, path: Path) -> AnyObject:
    """Return a ConfigMap that the sidecar of Grafana finds by its label."""
    name = _name_of(release, f"{path.stem}-dashboard")
    found = release.new_object("ConfigMap", name, data={path.name: _text_of(release, path)})
    found.metadata["labels"] = {**release.labels, "grafana_dashboard": "1"}
    return found


def _routing_of(release: Release) -> AnyObject:
    """Return an AlertmanagerConfig that sends critical alerts to PagerDuty, with the key in a Secret."""
    secret = {"name": f"{release.name}-pagerduty", "key": "routing-key"}
    matchers = [{"name": "severity", "value": "critical", "matchType": "="}]
    route = {"receiver": "pagerduty", "groupBy": ["alertname"], "matchers": matchers, "repeatInterval": "4h"}
    receivers = [{"name": "pagerduty", "pagerdutyConfigs": [{"routingKey": secret, "sendResolved": True}]}]
    return release.new_object(
        "AlertmanagerConfig",
        release.name,
        api="monitoring.coreos.com/v1alpha1",
        spec={"route": route, "receivers": receivers},
    )
