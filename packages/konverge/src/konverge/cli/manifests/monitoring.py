"""The monitoring of an operator: a ServiceMonitor, its alert rules and dashboards, and a route for its alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from konverge.cli.manifests.release import Release
from konverge.objects import AnyObject, Unstructured
from konverge.schema import to_yaml

__all__ = ["monitoring_files"]


def monitoring_files(release: Release) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files to install, and samples to edit first, by name."""
    objects: dict[str, list[AnyObject]] = {"servicemonitor.yaml": [_monitor_of(release)]}
    rules = [path for path in release.operator.monitoring if path.suffix != ".json"]
    for path in rules:
        objects[f"alerts-{path.stem}.yaml"] = [_placed(release, one) for one in yaml.safe_load_all(path.read_text())]
    for path in release.operator.monitoring:
        if path.suffix == ".json":
            objects[f"dashboard-{path.stem}.yaml"] = [_dashboard_of(release, path)]
    samples = {"alertmanagerconfig-sample.yaml": to_yaml(_routing_of(release))} if rules else {}
    return {name: to_yaml(*found) for name, found in objects.items()}, samples


def _monitor_of(release: Release) -> AnyObject:
    return release.new_object(
        "ServiceMonitor",
        release.name,
        api="monitoring.coreos.com/v1",
        spec={
            "selector": {"matchLabels": {"app.kubernetes.io/name": release.name}},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    )


def _placed(release: Release, document: dict[str, Any]) -> Unstructured:
    """Return an object in the namespace of the release, with its labels."""
    found = Unstructured(document)
    found.metadata["namespace"] = release.namespace
    found.metadata["labels"] = {**found.metadata.get("labels", {}), **release.labels}
    return found


def _dashboard_of(release: Release, path: Path) -> AnyObject:
    """Return a ConfigMap that the sidecar of Grafana finds by its label."""
    found = release.new_object("ConfigMap", f"{path.stem}-dashboard", data={path.name: path.read_text()})
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
