"""The monitoring component: PodMonitor and PrometheusRule where the Prometheus operator is installed, a dashboard."""

from __future__ import annotations

import json

from konverge import Context
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import AnyObject, Kind
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.names import Part
from konverge_operators.manifests import POD_MONITOR, Json, scrape_annotations, unstructured

__all__ = ["KINDS", "OPTIONAL_KINDS", "monitoring_objects", "service_annotations"]

PROMETHEUS_RULE = Kind("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")
KINDS = (ConfigMap,)
OPTIONAL_KINDS = (POD_MONITOR, PROMETHEUS_RULE)


def service_annotations(app: EcommerceApp, ctx: Context, port: int) -> dict[str, str]:
    """Return annotations of a Service for a Prometheus without its operator; {} where that is installed."""
    monitoring = app.spec.monitoring
    wanted = monitoring.enabled and monitoring.prometheus and not ctx.is_served(POD_MONITOR)
    return scrape_annotations(port, "/metrics") if wanted else {}


async def monitoring_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the monitoring."""
    objects: list[AnyObject] = []
    if app.spec.monitoring.grafana:
        objects.append(_dashboard(app))
    if app.spec.monitoring.prometheus:
        specs = {POD_MONITOR: _pod_monitor(app), PROMETHEUS_RULE: _rule(app)}
        labels = Part(app, "monitoring").labels
        objects += [unstructured(kind, app.name, labels, spec) for kind, spec in specs.items() if ctx.is_served(kind)]
    return objects


def _pod_monitor(app: EcommerceApp) -> Json:
    tiers = {"key": "app.kubernetes.io/component", "operator": "In", "values": ["backend", "frontend"]}
    selected = {"matchLabels": {"app.kubernetes.io/instance": app.name}, "matchExpressions": [tiers]}
    return {"selector": selected, "podMetricsEndpoints": [{"port": "http"}]}


def _rule(app: EcommerceApp) -> Json:
    def alert(name: str, expression: str, summary: str) -> Json:
        texts = {"labels": {"severity": "critical"}, "annotations": {"summary": summary}}
        return {"alert": name, "expr": expression, "for": "10m", **texts}

    rules = [
        alert(
            "EcommerceTierUnavailable",
            f'kube_deployment_status_replicas_available{{namespace="{app.namespace}",'
            f'deployment=~"{app.name}-(backend|frontend)"}} == 0',
            f"{{{{ $labels.deployment }}}} of {app.key} has no available replica",
        ),
        alert(
            "EcommerceDatabaseUnavailable",
            f'kube_statefulset_status_replicas_ready{{namespace="{app.namespace}",'
            f'statefulset="{Part(app, "database").name}"}} == 0',
            f"the database of {app.key} is not ready",
        ),
    ]
    return {"groups": [{"name": app.name, "rules": rules}]}


def _dashboard(app: EcommerceApp) -> ConfigMap:
    def panel(title: str, expression: str, place: int) -> Json:
        grid = {"x": 12 * (place % 2), "y": 8 * (place // 2), "w": 12, "h": 8}
        return {"title": title, "type": "timeseries", "gridPos": grid, "targets": [{"expr": expression}]}

    pods = f'namespace="{app.namespace}",pod=~"{app.name}-.*"'
    panels = [
        panel("Available replicas", f'kube_deployment_status_replicas_available{{namespace="{app.namespace}"}}', 0),
        panel("CPU", f"sum by (pod) (rate(container_cpu_usage_seconds_total{{{pods}}}[5m]))", 1),
        panel("Memory", f"sum by (pod) (container_memory_working_set_bytes{{{pods}}})", 2),
        panel("Restarts", f"sum by (pod) (increase(kube_pod_container_status_restarts_total{{{pods}}}[1h]))", 3),
    ]
    document = json.dumps({"title": f"{app.namespace}/{app.name}", "panels": panels}, indent=2)
    found = Part(app, "dashboard", component="monitoring").child(ConfigMap, data={f"{app.name}.json": document})
    found.metadata.labels = {**(found.metadata.labels or {}), "grafana_dashboard": "1"}
    return found
