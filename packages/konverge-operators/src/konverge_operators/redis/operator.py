"""The operator of Cache, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from pathlib import Path

from konverge.manager import Operator
from konverge_operators.redis.cache.reconciler import CacheReconciler, cache_controller
from konverge_operators.redis.local_images import local_images
from konverge_operators.redis.servers import OPERATOR

__all__ = ["new_operator", "operator"]

_SAMPLES = Path(__file__).parent / "samples"


def new_operator(caches: CacheReconciler | None = None) -> Operator:
    """Return the operator of a new process."""
    caches = caches or CacheReconciler()
    return Operator(
        name=OPERATOR,
        controllers=(cache_controller(caches),),
        samples=(_SAMPLES / "cache.yaml",),
        images=(local_images,),
        metrics=caches.metrics.collectors,
    )


operator = new_operator()
