"""The dashboard and the alerts of the EcommerceApp operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.cli.manifests import Release, files_of
from konverge.manager import LeaderElection
from konverge_cluster.operator_accounts import NAMESPACE
from konverge_cluster.testing import TestCluster
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import EcommerceReconciler, new_operator
from operator_monitoring import check_panels, check_queries, check_rule, rules_of, samples_of
from repository import ROOT
from shop_apps import prepare, sample

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/ecommerce"


def is_running(app: object) -> bool:
    return isinstance(app, EcommerceApp) and app.status.phase is Phase.RUNNING


async def test_every_metric_and_label_of_a_query_exists(cluster: TestCluster) -> None:
    reconciler, client = EcommerceReconciler(), cluster.client()
    reconciler.metrics.unexpected.labels("Deleting", "Running")
    await prepare(client)
    election = LeaderElection("ecommerce-operator", NAMESPACE, clock=asyncio.get_running_loop().time)
    async with cluster.operator(new_operator(reconciler), leader_election=election) as manager:
        app = await client.create(sample())
        await client.wait_for(EcommerceApp, app.key, is_running)
        check_queries(FOLDER, samples_of(manager))


@pytest.mark.parametrize("rule", rules_of(FOLDER), ids=lambda rule: rule["alert"])
def test_an_alert_is_described_and_the_runbook_has_it(rule: dict[str, Any]) -> None:
    check_rule(FOLDER, rule)


def test_the_dashboard_has_no_overlapping_panels_and_legends_of_existing_labels() -> None:
    check_panels(FOLDER)


def test_manifests_install_the_rules_and_the_dashboard() -> None:
    release = Release(operator=new_operator(), target="konverge_operators.ecommerce", namespace="shops", image="s:1")
    written = [text for name, text in files_of(release).items() if name.startswith("monitoring/")]
    assert any("EcommerceAppDegraded" in text for text in written if "kind: PrometheusRule" in text)
    assert any("EcommerceApps by phase" in text for text in written)
