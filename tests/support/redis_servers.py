"""Redis servers for tests: samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import konverge_operators.redis
from konverge.objects import from_wire
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.cluster.api import RedisCluster

SAMPLES = Path(konverge_operators.redis.__file__).parent / "samples"


def cache_sample(file: str = "cache.yaml", **spec: Any) -> Cache:
    """Return a Cache of the samples, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / file).read_text())
    document["spec"].update(spec)
    return from_wire(Cache, document)


def cluster_sample(file: str = "redis-cluster.yaml", **spec: Any) -> RedisCluster:
    """Return a RedisCluster of the samples, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / file).read_text())
    document["spec"].update(spec)
    return from_wire(RedisCluster, document)
