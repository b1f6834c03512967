"""The dashboard and the alerts of the Database operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.metadata import files
from typing import Any

import promql_parser
import pytest
import yaml

from databases import database
from konverge.cli.manifests import Release, files_of
from konverge.manager import LeaderElection
from konverge_cluster.operator_accounts import NAMESPACE
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator
from konverge_operators.database.reconciler import DatabaseReconciler
from promql_queries import labels_of_groups, metrics_in
from repository import ROOT

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/database"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboards" / "database-operator.json").read_text())
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts" / "database-operator.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
TARGETS = [target for panel in PANELS for target in panel["targets"]]
QUERIES = [one["expr"] for one in (*RULES, *TARGETS)]
SCRAPED = {"namespace", "pod"}
"""Labels that Prometheus adds."""


def patroni_metrics() -> dict[str, set[str]]:
    """Return the metrics of Patroni that its program has, with their labels."""
    source = next(one for one in files("patroni") or () if str(one) == "patroni/api.py").read_text()
    return {name: {"scope", "name"} for name in re.findall(r"# TYPE (patroni_\w+)", source)}


async def operator_metrics(cluster: TestCluster) -> dict[str, set[str]]:
    """Return the samples that a running operator exports, with their labels."""
    engine = InMemoryEngine()
    engine.server = client = cluster.client()
    reconciler = DatabaseReconciler({engine.name: engine})
    reconciler.metrics.unexpected.labels("Deleting", "Ready")
    election = LeaderElection("database-operator", NAMESPACE, clock=asyncio.get_running_loop().time)
    async with cluster.operator(new_operator([engine], reconciler), leader_election=election) as manager:
        await client.create(database())
        await client.wait_for(
            Database,
            "orders",
            lambda one: isinstance(one, Database) and one.status.phase is Phase.READY,
            namespace="default",
        )
        assert manager._running is not None
        return samples_of(manager._running.monitoring.registry)


def samples_of(registry: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def test_every_metric_and_label_of_a_query_exists(cluster: TestCluster) -> None:
    there = await operator_metrics(cluster) | patroni_metrics()
    for query in QUERIES:
        named = metrics_in(query)
        assert named
        for metric, labels in named.items():
            assert metric in there, query
            assert labels | labels_of_groups(query) <= there[metric] | SCRAPED | {"le"}, query


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_described_and_the_runbook_has_it(rule: dict[str, Any]) -> None:
    texts = rule["annotations"]
    assert set(texts) == {"summary", "description"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    promql_parser.parse_duration(rule.get("for", "1m"))
    assert set(re.findall(r"\$labels\.(\w+)", str(texts))) <= labels_of_groups(rule["expr"])
    assert f"| `{rule['alert']}` |" in (FOLDER / "README.md").read_text()


def test_the_dashboard_has_no_overlapping_panels_and_legends_of_existing_labels() -> None:
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in PANELS]
    assert len(set(places)) == len(places)
    assert {(one["gridPos"]["w"], one["gridPos"]["h"]) for one in PANELS} == {(8, 8)}
    assert all(x % 8 == y % 8 == 0 and x < 24 for x, y in places)
    for target in TARGETS:
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels_of_groups(target["expr"])


def test_manifests_install_the_rules_and_the_dashboard() -> None:
    release = Release(
        operator=new_operator([InMemoryEngine()]), target="konverge_operators.database", namespace="db", image="d:1"
    )
    written = {name: text for name, text in files_of(release).items() if name.startswith("monitoring/")}
    rules = [text for text in written.values() if "kind: PrometheusRule" in text]
    assert any("DatabaseWithoutPrimary" in text for text in rules)
    assert any("Primaries of each database" in text for text in written.values())
