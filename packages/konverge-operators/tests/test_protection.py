"""The annotation that protects from deletion means the same for every operator whose objects have a workflow."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.k8s.core.v1 import ConfigMap
from konverge_operators.ecommerce.operator import EcommerceReconciler
from konverge_operators.myapp.operator import MyAppReconciler
from konverge_operators.protection import PROTECTED, protection_of
from konverge_operators.redis.cache.reconciler import CacheReconciler
from konverge_operators.redis.cluster.reconciler import RedisClusterReconciler


@pytest.mark.parametrize("reconciler", [EcommerceReconciler, MyAppReconciler, CacheReconciler, RedisClusterReconciler])
def test_every_workflow_keeps_protected_objects(reconciler: type[Any]) -> None:
    assert reconciler.workflow.protected is protection_of


@pytest.mark.parametrize(
    ("annotations", "kept"), [({PROTECTED: "true"}, True), ({PROTECTED: "false"}, False), ({"other": "true"}, False)]
)
def test_an_object_with_the_annotation_is_kept(annotations: dict[str, str], kept: bool) -> None:
    assert (PROTECTED in protection_of(ConfigMap(metadata=ObjectMeta(name="a", annotations=annotations)))) == kept
