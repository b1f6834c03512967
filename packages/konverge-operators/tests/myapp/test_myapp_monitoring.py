"""The dashboard and the alerts of the MyApp operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.cli.manifests import Release, files_of
from konverge.manager import LeaderElection
from konverge_cluster.operator_accounts import NAMESPACE
from konverge_cluster.testing import TestCluster
from konverge_operators.myapp.api import MyApp
from konverge_operators.myapp.operator import MyAppReconciler, new_operator
from my_apps import my_app
from operator_monitoring import check_panels, check_queries, check_rule, rules_of, samples_of
from repository import ROOT

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/myapp"


def has_phase(found: object) -> bool:
    return isinstance(found, MyApp) and found.status.phase in ("Ready", "Running")


async def test_every_metric_and_label_of_a_query_exists(cluster: TestCluster) -> None:
    reconciler, client = MyAppReconciler(), cluster.client()
    reconciler.metrics.unexpected.labels("Deleting", "Running")
    election = LeaderElection("myapp-operator", NAMESPACE, clock=asyncio.get_running_loop().time)
    async with cluster.operator(new_operator(reconciler), leader_election=election) as manager:
        await client.create(my_app(database=None, cache=None))
        await client.wait_for(MyApp, "shop", has_phase)
        check_queries(FOLDER, samples_of(manager))


@pytest.mark.parametrize("rule", rules_of(FOLDER), ids=lambda rule: rule["alert"])
def test_an_alert_is_described_and_the_runbook_has_it(rule: dict[str, Any]) -> None:
    check_rule(FOLDER, rule)


def test_the_dashboard_has_no_overlapping_panels_and_legends_of_existing_labels() -> None:
    check_panels(FOLDER)


def test_manifests_install_the_rules_and_the_dashboard() -> None:
    release = Release(operator=new_operator(), target="konverge_operators.myapp", namespace="apps", image="m:1")
    written = [text for name, text in files_of(release).items() if name.startswith("monitoring/")]
    assert any("MyAppDegraded" in text for text in written if "kind: PrometheusRule" in text)
    assert any("MyApps by phase" in text for text in written)
