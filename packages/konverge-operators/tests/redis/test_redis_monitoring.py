"""The dashboard and the alerts of the Redis operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.cli.manifests import Release, files_of
from konverge.manager import LeaderElection
from konverge_cluster.operator_accounts import NAMESPACE
from konverge_cluster.testing import TestCluster
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.cache.reconciler import CacheReconciler
from konverge_operators.redis.cluster.api import RedisCluster
from konverge_operators.redis.cluster.reconciler import RedisClusterReconciler
from konverge_operators.redis.operator import new_operator
from operator_monitoring import check_panels, check_queries, check_rule, rules_of, samples_of
from redis_engine import PodEngine
from redis_servers import cache_sample, cluster_sample
from repository import ROOT

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/redis"


def has_phase(found: object) -> bool:
    return isinstance(found, (Cache, RedisCluster)) and found.status.phase in ("Ready", "Running")


async def test_every_metric_and_label_of_a_query_exists(cluster: TestCluster) -> None:
    caches, clusters, client = CacheReconciler(), RedisClusterReconciler(), cluster.client()
    for reconciler in (caches, clusters):
        reconciler.metrics.unexpected.labels("Deleting", "Ready")
    election = LeaderElection("redis-operator", NAMESPACE, clock=asyncio.get_running_loop().time)
    operator = new_operator(caches, clusters, engine=PodEngine().opened)
    async with cluster.operator(operator, leader_election=election) as manager:
        await client.create(cache_sample())
        await client.create(cluster_sample())
        await client.wait_for(Cache, "sessions", has_phase)
        await client.wait_for(RedisCluster, "store", has_phase)
        check_queries(FOLDER, samples_of(manager))


@pytest.mark.parametrize("rule", rules_of(FOLDER), ids=lambda rule: rule["alert"])
def test_an_alert_is_described_and_the_runbook_has_it(rule: dict[str, Any]) -> None:
    check_rule(FOLDER, rule)


def test_the_dashboard_has_no_overlapping_panels_and_legends_of_existing_labels() -> None:
    check_panels(FOLDER)


def test_manifests_install_the_rules_and_the_dashboard() -> None:
    release = Release(operator=new_operator(), target="konverge_operators.redis", namespace="redis", image="r:1")
    written = [text for name, text in files_of(release).items() if name.startswith("monitoring/")]
    assert any("RedisClusterSlotsUncovered" in text for text in written if "kind: PrometheusRule" in text)
    assert any("RedisClusters by phase" in text for text in written)
