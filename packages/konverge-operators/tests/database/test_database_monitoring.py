"""The dashboard and the alerts of the Database operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import files
from typing import Any

import pytest

from databases import database
from konverge.cli.manifests import Release, files_of
from konverge.manager import LeaderElection
from konverge_cluster.operator_accounts import NAMESPACE
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator
from konverge_operators.database.reconciler import DatabaseReconciler
from operator_monitoring import check_panels, check_queries, check_rule, rules_of, samples_of
from repository import ROOT

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/database"


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
        await client.create(database(backup={"enabled": True}))
        await client.wait_for(
            Database,
            "orders",
            lambda one: isinstance(one, Database) and one.status.phase is Phase.READY,
            namespace="default",
        )
        return samples_of(manager)


async def test_every_metric_and_label_of_a_query_exists(cluster: TestCluster) -> None:
    check_queries(FOLDER, await operator_metrics(cluster) | patroni_metrics())


@pytest.mark.parametrize("rule", rules_of(FOLDER), ids=lambda rule: rule["alert"])
def test_an_alert_is_described_and_the_runbook_has_it(rule: dict[str, Any]) -> None:
    check_rule(FOLDER, rule)


def test_the_dashboard_has_no_overlapping_panels_and_legends_of_existing_labels() -> None:
    check_panels(FOLDER)


def test_manifests_install_the_rules_and_the_dashboard() -> None:
    release = Release(
        operator=new_operator([InMemoryEngine()]), target="konverge_operators.database", namespace="db", image="d:1"
    )
    written = {name: text for name, text in files_of(release).items() if name.startswith("monitoring/")}
    rules = [text for text in written.values() if "kind: PrometheusRule" in text]
    assert any("DatabaseWithoutPrimary" in text for text in rules)
    assert any("Primaries of each database" in text for text in written.values())
