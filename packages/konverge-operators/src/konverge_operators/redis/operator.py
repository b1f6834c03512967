"""The operator of Cache and RedisCluster, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from konverge import Client
from konverge.manager import OpenShared, Operator
from konverge_operators.redis.cache.reconciler import CacheReconciler, cache_controller
from konverge_operators.redis.cluster.engine import Engine
from konverge_operators.redis.cluster.reconciler import RedisClusterReconciler, cluster_controller
from konverge_operators.redis.local_images import local_images
from konverge_operators.redis.servers import OPERATOR

__all__ = ["new_operator", "operator"]

_FOLDER = Path(__file__).parent


@asynccontextmanager
async def open_engine(_client: Client) -> AsyncGenerator[Engine]:
    """Share the connections to servers between reconciles. It needs redis-py: konverge-operators[redis]."""
    from konverge_operators.redis.cluster.redis_engine import RedisEngine  # other commands do without

    engine = RedisEngine()
    try:
        yield engine
    finally:
        await engine.close()


def new_operator(
    caches: CacheReconciler | None = None,
    clusters: RedisClusterReconciler | None = None,
    engine: OpenShared = open_engine,
) -> Operator:
    """Return the operator of a new process."""
    caches, clusters = caches or CacheReconciler(), clusters or RedisClusterReconciler()
    return Operator(
        name=OPERATOR,
        controllers=(cache_controller(caches), cluster_controller(clusters)),
        samples=(_FOLDER / "samples" / "cache.yaml", _FOLDER / "samples" / "redis-cluster.yaml"),
        monitoring=(_FOLDER / "alerts" / "redis-operator.yaml", _FOLDER / "dashboards" / "redis-operator.json"),
        images=(local_images,),
        metrics=(*caches.metrics.collectors, *clusters.metrics.collectors),
        shared=(engine,),
    )


operator = new_operator()
